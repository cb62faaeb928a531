#!/usr/bin/env bash
# npm run test:valgrind: every vector under valgrind, on the CPU and on the stand-in driver. Fails on
# an access that is not allowed, a use of memory that holds nothing yet, or a block that is lost.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
node __test__/faults/build.mjs
# As it ships, but with names for what valgrind finds.
CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only \
  cargo build --release --locked --target-dir target/valgrind
cp target/valgrind/release/libcugather.so target/valgrind/cugather.node
export CUGATHER_BINDING=$PWD/target/valgrind/cugather.node
run() { # run DEVICE
  echo "== every vector under valgrind: $1"
  valgrind --quiet --leak-check=full --show-leak-kinds=definite,indirect \
    --errors-for-leak-kinds=definite,indirect --error-exitcode=9 \
    --suppressions=scripts/valgrind.supp \
    node --single-threaded-gc __test__/every-vector.js "$1"
}
run cpu
LD_LIBRARY_PATH=target/stand-in run cuda
echo 'valgrind: no error, no lost block'
