#!/usr/bin/env python3
"""Builds kernels/gather.ptx from kernels/gather.cu, or checks that it is what gather.cu gives.

    python3 scripts/build_kernels.py            write kernels/gather.ptx
    python3 scripts/build_kernels.py --check    compare it, and assemble it for every architecture

The compiler is NVRTC 12.0.76: its PTX (ISA 8.0) is taken by every driver from R525 on, while that
of a newer compiler is refused by older drivers with error 222. Compiler and assemblers come from
their PyPI wheels into target/cuda-tools; neither needs a GPU.
"""

import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "kernels" / "gather.cu"
PTX = ROOT / "kernels" / "gather.ptx"
TOOLS = ROOT / "target" / "cuda-tools"

NVRTC = "nvidia-cuda-nvrtc-cu12==12.0.76"
# The assembler of the oldest and of the newest toolkit line that know all of these.
ASSEMBLERS = ["nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-cuda-nvcc==13.0.88"]
ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]

# compute_50 is the oldest virtual architecture that NVRTC 12.0 knows; the driver compiles it for
# the card at hand.
OPTIONS = ["--gpu-architecture=compute_50", "--std=c++17", "--device-as-default-execution-space"]


def install(requirement):
    """The folder that holds a wheel's files, installed there on the first use."""
    folder = TOOLS / requirement.replace("==", "-")
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=make(TOOLS)) as fresh:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            pip += ["--disable-pip-version-check", "--root-user-action=ignore"]
            subprocess.run([*pip, "--target", f"{fresh}/wheel", requirement], check=True)
            pathlib.Path(fresh, "wheel").rename(folder)
    return folder


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find(folder, pattern):
    found = sorted(folder.rglob(pattern))
    if not found:
        sys.exit(f"{folder} holds no {pattern}")
    return found[0]


def compile_ptx():
    """The PTX of gather.cu, as bytes."""
    library = find(install(NVRTC), "libnvrtc.so.12")
    # NVRTC looks for its builtins by name alone.
    ctypes.CDLL(str(find(library.parent, "libnvrtc-builtins.so.12.0")), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(library))

    def check(status, what):
        if status != 0:
            nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            sys.exit(f"{what}: {nvrtc.nvrtcGetErrorString(status).decode()}")

    def read(size, get, what):
        length = ctypes.c_size_t()
        check(size(program, ctypes.byref(length)), what)
        buffer = ctypes.create_string_buffer(length.value)
        check(get(program, buffer), what)
        return buffer.value

    program = ctypes.c_void_p()
    source = SOURCE.read_bytes()
    status = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"gather.cu", 0, None, None)
    check(status, "nvrtcCreateProgram")
    options = (ctypes.c_char_p * len(OPTIONS))(*[option.encode() for option in OPTIONS])
    status = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    log = read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, "nvrtcGetProgramLog")
    if log.strip():
        print(log.decode(), file=sys.stderr)
    check(status, "nvrtcCompileProgram")
    return read(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, "nvrtcGetPTX")


def assemble():
    """Assembles gather.ptx for every architecture with every assembler."""
    for requirement in ASSEMBLERS:
        ptxas = find(install(requirement), "bin/ptxas")
        ptxas.chmod(0o755)
        for architecture in ARCHITECTURES:
            command = [ptxas, f"--gpu-name={architecture}", "--warning-as-error", PTX]
            subprocess.run([*command, "--output-file=/dev/null"], check=True)
        print(f"{requirement}: assembled for {', '.join(ARCHITECTURES)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare and assemble, write nothing")
    check_only = parser.parse_args().check
    ptx = compile_ptx()
    if not check_only:
        PTX.write_bytes(ptx)
    elif not PTX.exists() or PTX.read_bytes() != ptx:
        sys.exit("kernels/gather.ptx is not what kernels/gather.cu gives: npm run build:kernels")
    print(f"kernels/gather.ptx: {len(ptx)} bytes, {'unchanged' if check_only else 'written'}")
    if check_only:
        assemble()


if __name__ == "__main__":
    main()
