#!/usr/bin/env bash
# npm run fuzz [-- SECONDS]: each target of fuzz/ for so many seconds (300 unless said), under the
# address sanitizer. Installs cargo-fuzz where it is missing.
#
# RUSTC_BOOTSTRAP lets a stable compiler take the sanitizer's flags; it is for this alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-300}
cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked
export RUSTC_BOOTSTRAP=1
for target in shape gather; do
  echo "== $target for $seconds s"
  cargo fuzz run "$target" -- -max_total_time="$seconds" -print_final_stats=1 -verbosity=0
done
