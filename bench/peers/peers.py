#!/usr/bin/env python3
"""numpy, PyTorch and CuPy, doing what bench/run.mjs asks for.

Reads one JSON object a line and answers each with another. First of all, unasked, it says which of
them are there: {"versions": {"numpy": "2.3.0", ...}}. A request names "peer", "work" (a function
below), "source", "index" and "expected" (files of raw float32 bits, int32, and the bits that are
right), "rounds", "warmup". The answer has "times" in milliseconds and "equal"; or "error".
"""

import json
import sys
import time

VERSIONS = {}
try:
    import numpy

    VERSIONS["numpy"] = numpy.__version__
except ImportError:
    pass
try:
    import torch

    if torch.cuda.is_available():
        VERSIONS["pytorch"] = torch.__version__
except ImportError:
    pass
try:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() > 0:
        VERSIONS["cupy"] = cupy.__version__
except Exception:  # not installed, or no GPU: CuPy has an error of its own for each
    pass

_FILES = {}


def read(file, dtype):
    """The array in a file, in ordinary memory, read once."""
    if file not in _FILES:
        _FILES[file] = numpy.fromfile(file, dtype=dtype)
    return _FILES[file]


def arrays(request):
    return (
        read(request["source"], numpy.float32),
        read(request["index"], numpy.int32),
        read(request["expected"], numpy.uint32),
    )


def timed(work, request, before=lambda: None):
    """The times of `work` after a warm-up, and its last result, before which `before` was called."""
    times, result = [], None
    last = request["warmup"] + request["rounds"] - 1
    for round in range(last + 1):
        if round in (0, last):
            before()
        start = time.perf_counter()
        result = work()
        took = (time.perf_counter() - start) * 1000
        if round >= request["warmup"]:
            times.append(took)
    return times, result


def answer(times, result, expected):
    got = numpy.ascontiguousarray(result).view(numpy.uint32)
    return {"times": times, "equal": bool(numpy.array_equal(got, expected))}


# numpy


def numpy_take(request):
    source, index, expected = arrays(request)
    return answer(*timed(lambda: source.take(index), request), expected)


# PyTorch: every work ends with the result on the host, so with a wait for the device.


def resident_torch(source):
    """The source on the device, the one that was asked for last."""
    if resident_torch.of is not source:
        resident_torch.table = None
        resident_torch.table = torch.from_numpy(source).cuda()
        resident_torch.of = source
    return resident_torch.table


resident_torch.of = None


def torch_host(request):
    source, index, expected = arrays(request)
    table, by = torch.from_numpy(source), torch.from_numpy(index)
    work = lambda: torch.index_select(table.cuda(), 0, by.cuda()).cpu()
    return answer(*timed(work, request), expected)


def torch_pinned(request):
    source, index, expected = arrays(request)
    table, by = torch.from_numpy(source).pin_memory(), torch.from_numpy(index)
    work = lambda: torch.index_select(table.cuda(non_blocking=True), 0, by.cuda()).cpu()
    return answer(*timed(work, request), expected)


def torch_kept(request):
    source, index, expected = arrays(request)
    table, by, kept = resident_torch(source), torch.from_numpy(index), []

    def work():
        kept.append(torch.index_select(table, 0, by.cuda()).cpu())
        return kept[-1]

    return answer(*timed(work, request), expected)


def torch_dropped(request):
    source, index, expected = arrays(request)
    table, by = resident_torch(source), torch.from_numpy(index)
    work = lambda: torch.index_select(table, 0, by.cuda()).cpu()
    return answer(*timed(work, request), expected)


def torch_out(request):
    source, index, expected = arrays(request)
    table, by = resident_torch(source), torch.from_numpy(index)
    out = torch.empty(len(index), dtype=torch.float32)

    def work():
        return out.copy_(torch.index_select(table, 0, by.cuda()))

    def poison():
        out.view(torch.int32).fill_(-1)

    return answer(*timed(work, request, poison), expected)


def torch_bus(request):
    """Page-locked copies of 256 MiB each way, in GB/s: what no gather can be faster than."""
    host = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    rates = {}
    for name, to, source in (("up", device, host), ("down", host, device)):

        def work():
            to.copy_(source, non_blocking=True)
            torch.cuda.synchronize()

        times, _ = timed(work, request)
        rates[name] = (1 << 28) / sorted(times)[len(times) // 2] / 1e6
    return rates


# CuPy


def cupy_host(request):
    source, index, expected = arrays(request)
    work = lambda: cupy.asnumpy(cupy.asarray(source)[cupy.asarray(index)])
    result = answer(*timed(work, request), expected)
    cupy.get_default_memory_pool().free_all_blocks()
    return result


def cupy_dropped(request):
    source, index, expected = arrays(request)
    table = cupy.asarray(source)
    work = lambda: cupy.asnumpy(table[cupy.asarray(index)])
    result = answer(*timed(work, request), expected)
    del table
    cupy.get_default_memory_pool().free_all_blocks()
    return result


WORKS = {
    "numpy": {"take": numpy_take},
    "pytorch": {
        "host": torch_host,
        "pinned": torch_pinned,
        "kept": torch_kept,
        "dropped": torch_dropped,
        "out": torch_out,
        "bus": torch_bus,
    },
    "cupy": {"host": cupy_host, "dropped": cupy_dropped},
}


def main():
    print(json.dumps({"versions": VERSIONS}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result = WORKS[request["peer"]][request["work"]](request)
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
