#!/usr/bin/env python3
"""Times the kernels of kernels/gather.ptx beside PyTorch's index_select, on this machine's GPU.

    python3 bench/peers/kernels.py [--quick] [--json FILE]

Needs PyTorch with CUDA. Both gather the same rows by the same random int32 indices in one process,
timed by CUDA events, in turns, the median of many runs after a warm-up; ours are compared with
PyTorch's, bit for bit, in a result that was poisoned first. GB/s count row read + row write + index
read.

Each is timed in two ways. "launched" has the events around one launch from Python, after another of
its kind: for a small gather that is the time of the launch. "replayed" has them around a CUDA graph of
as many launches as read and write about 32 MiB, each with indices and a result of its own, from a
cold L2 cache: that is the time of the kernel, and the gap before the next.
"""

import argparse
import ctypes
import json
import pathlib
import statistics

import torch

PTX = pathlib.Path(__file__).resolve().parent.parent.parent / "kernels" / "gather.ptx"
THREADS = 256
INT32, RAISE = 4, 0  # IndexType and Mode in kernels/gather.cu
ROUNDS = 30
# What a graph moves, as far as it takes no more launches than that.
REPLAYED_BYTES, MOST_LAUNCHES = 32 << 20, 64
# Floats to read between replays: more than any L2 cache holds.
FLUSHING = 64 << 20
SEED = 20261201


class GatherArgs(ctypes.Structure):
    """The struct of kernels/gather.cu."""

    _fields_ = [("fill", ctypes.c_uint8 * 16)]
    _fields_ += [(name, ctypes.c_uint64) for name in ("source", "index", "out", "first_outside")]
    _fields_ += [(name, ctypes.c_uint64) for name in ("length", "rows", "units", "units_magic")]
    _fields_ += [(name, ctypes.c_uint32) for name in ("units_shift", "index_type", "mode", "wrap")]


assert ctypes.sizeof(GatherArgs) == 96, "not the struct of kernels/gather.cu"


class Kernels:
    """The kernels, launched on PyTorch's current stream."""

    def __init__(self):
        torch.cuda.init()
        torch.empty(1, device="cuda")  # makes the context that the module is loaded into
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.module = ctypes.c_void_p()
        image = PTX.read_bytes() + b"\0"
        self.call("cuModuleLoadData", ctypes.byref(self.module), image)
        self.functions = {}

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: error {status}")

    def function(self, name):
        if name not in self.functions:
            found = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(found), self.module, name.encode())
            self.functions[name] = found
        return self.functions[name]

    def launcher(self, table, index, out, first_outside):
        """A function that launches, on the stream current now, what src/cuda/kernels.rs would."""
        row_bytes = table.shape[1] * table.element_size()
        together = row_bytes | table.data_ptr() | out.data_ptr() | 16
        width = together & -together
        units = row_bytes // width
        bits = (units - 1).bit_length()
        args = GatherArgs(
            source=table.data_ptr(),
            index=index.data_ptr(),
            out=out.data_ptr(),
            first_outside=first_outside.data_ptr(),
            length=index.numel(),
            rows=table.shape[0],
            units=units,
            units_magic=(1 << (63 + bits)) // units + 1 if units > 1 else 0,
            units_shift=bits - 1 if units > 1 else 0,
            index_type=INT32,
            mode=RAISE,
            wrap=1,
        )
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(args))
        kind, per_thread = ("row", 1) if units == 1 else ("rows", 4)
        function = self.function(f"gather_{kind}_{width}")
        blocks = -(-index.numel() * units // (THREADS * per_thread))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        # All that ctypes would do anew at each launch is done here: the addon launches from native
        # code, and what is to be measured is the kernel.
        native = self.cuda.cuLaunchKernel
        native.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
        grid = (blocks, 1, 1, THREADS, 1, 1, 0)
        arguments = (function, *grid, stream, ctypes.cast(parameters, ctypes.c_void_p), None)

        def launch():
            if native(*arguments) != 0:
                raise RuntimeError("cuLaunchKernel failed")
            return args, parameters  # kept alive by the closure

        return launch


def medians_us(works, before=lambda: None, rounds=ROUNDS):
    """The median time of one run of each, in microseconds, by CUDA events around it.

    In turns, so that both meet the same machine; ten at a time after two that do not count.
    """
    times = [[] for _ in works]
    for _ in range(rounds // 10):
        for work, of in zip(works, times):
            for round in range(2 + 10):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                before()
                begin.record()
                work()
                end.record()
                end.synchronize()
                if round >= 2:
                    of.append(begin.elapsed_time(end) * 1000)
    return [statistics.median(of) for of in times]


def replay(launches):
    """A function that replays the launches that the functions of `launches` make."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [launch() for launch in launches()]
    return lambda: (graph.replay(), kept)


def measure(kernels, rows, width, length, flush):
    """Both kernels on one shape: rows of `width` float32, `length` of them gathered."""
    generator = torch.Generator("cuda").manual_seed(SEED)
    table = torch.empty((rows, width), device="cuda").view(torch.int32)
    for start in range(0, rows, 1 << 22):
        part = table[start : start + (1 << 22)]
        part.random_(generator=generator)
    moved = length * (width * 4 * 2 + 4)
    first_outside = torch.full((1,), -1, device="cuda", dtype=torch.int64)
    sets = []
    for _ in range(min(MOST_LAUNCHES, max(1, REPLAYED_BYTES // moved))):
        index = torch.randint(rows, (length,), device="cuda", dtype=torch.int32, generator=generator)
        out = torch.full((length, width), -1, device="cuda", dtype=torch.int32)
        sets.append((index, out, torch.empty_like(out)))
    ours = lambda: [kernels.launcher(table, index, out, first_outside) for index, out, _ in sets]
    theirs = lambda: [
        lambda index=index, out=out: torch.index_select(table, 0, index, out=out)
        for index, _, out in sets
    ]
    launched = medians_us([ours()[0], theirs()[0]])
    for _, out, _ in sets:
        out.fill_(-1)
    replayed = medians_us([replay(ours), replay(theirs)], before=flush)
    equal = all(torch.equal(out, expected) for _, out, expected in sets)
    result = {
        "rows": rows,
        "row_floats": width,
        "indices": length,
        "equal": equal and first_outside.item() == -1,
    }
    for way, times, count in (("launched", launched, 1), ("replayed", replayed, len(sets))):
        ours_us, pytorch_us = (time / count for time in times)
        result[way] = {
            "cugather_us": round(ours_us, 2),
            "pytorch_us": round(pytorch_us, 2),
            "ratio": round(ours_us / pytorch_us, 3),
            "cugather_gb_s": round(moved / ours_us / 1e3, 1),
            "pytorch_gb_s": round(moved / pytorch_us / 1e3, 1),
        }
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures there as well; '-': there alone, to stdout")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    arguments = parser.parse_args()
    kernels = Kernels()
    # Scalars out of 128 Mi; then rows of a table of 8 GiB, one Mi of them.
    shapes = [(1 << 27, 1, 1 << k) for k in (10, 16, 20, 27)]
    shapes += [((2 << 30) // width, width, 1 << 20) for width in (4, 16, 32, 64, 128, 256)]
    if arguments.quick:
        shapes = [(1 << 20, 1, 1 << 10), (1 << 16, 32, 1 << 14)]
    show = print if arguments.json != "-" else lambda *_: None
    device = torch.cuda.get_device_properties(0)
    report = {"device": device.name, "torch": torch.__version__, "cuda": torch.version.cuda}
    report["results"] = []
    show(f"{device.name}, PyTorch {torch.__version__}")
    show("      rows floats   indices           cugather    PyTorch  ratio    GB/s  equal")
    flushing = torch.zeros(FLUSHING, device="cuda")
    for shape in shapes:
        result = measure(kernels, *shape, flushing.sum)
        report["results"].append(result)
        for way in ("launched", "replayed"):
            times = result[way]
            show(
                f"{result['rows']:>10} {result['row_floats']:>6} {result['indices']:>9} {way}"
                f" {times['cugather_us']:>7.1f} us {times['pytorch_us']:>7.1f} us"
                f" {times['ratio']:>6.3f} {times['cugather_gb_s']:>7.1f}  {result['equal']}"
            )
        torch.cuda.empty_cache()
    if arguments.json == "-":
        print(json.dumps(report))
    elif arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=2) + "\n")
    if not all(result["equal"] for result in report["results"]):
        raise SystemExit("a result differs from PyTorch's")


if __name__ == "__main__":
    main()
