#!/usr/bin/env bash
# On a machine with an NVIDIA GPU and python3, from the folder that npm run gpu-bundle made: unpacks
# Node and runs parts of the tests on CUDA.
#
#   bash gpu-bundle/run.sh [PART]...
#
#   all       suite, demo and memcheck: the default
#   suite     every test, on the CPU and on CUDA
#   demo      examples/demo.js
#   memcheck  every vector under compute-sanitizer's memcheck, where it is on the PATH
#   sanitize  the same under racecheck and initcheck as well
#   large     sizes past 2^31 elements and 4 GiB
#   bench     npm run bench, beside what Python, PyTorch, CuPy and nvcc there are; its files go to
#             gpu-bundle/bench
#
# A missing GPU is a failure. Each part runs whatever became of the ones before it; the exit code
# is that of the last one that failed.
set -u
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -f "$bundle/node.xz" ] || { echo 'run.sh belongs in the folder that npm run gpu-bundle makes' >&2; exit 2; }
cd "$bundle/cugather" || exit 1
export CUGATHER_DEVICE=cuda
failed=0

if [ ! -x "$bundle/bin/node" ]; then
  mkdir -p "$bundle/bin"
  python3 -c "import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], 'wb'), 1 << 20)" \
    "$bundle/node.xz" "$bundle/bin/node" && chmod +x "$bundle/bin/node" || exit 1
fi
export PATH="$bundle/bin:$PATH"

part() { # part NAME COMMAND...: runs one part and says how it ended
  local name=$1 code
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@"
  code=$?
  printf '== %s: exit code %s\n' "$name" "$code"
  [ "$code" -eq 0 ] || failed=$code
}

ava() { node node_modules/ava/entrypoints/cli.mjs "$@"; }

sanitize() { # sanitize TOOL
  if command -v compute-sanitizer >/dev/null; then
    part "$1" compute-sanitizer --tool "$1" --error-exitcode 9 node __test__/every-vector.js cuda
  else
    echo "$1: compute-sanitizer is not on the PATH; NOT RUN"
  fi
}

run() {
  case $1 in
    all) for each in suite demo memcheck; do run "$each"; done ;;
    suite) part suite ava ;;
    large) part large node --expose-gc __test__/large.js ;;
    bench) part bench env -u CUGATHER_DEVICE node bench/run.mjs --out ../bench ;;
    demo) part demo node examples/demo.js ;;
    memcheck) sanitize memcheck ;;
    sanitize) for tool in memcheck racecheck initcheck; do sanitize "$tool"; done ;;
    *) echo "run.sh: no part '$1'" >&2; exit 2 ;;
  esac
}

[ $# -gt 0 ] || set -- all
for each in "$@"; do run "$each"; done
exit "$failed"
