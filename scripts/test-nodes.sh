#!/usr/bin/env bash
# npm run test:nodes [-- LINE...]: the suite on every line of Node that is supported, each from the npm
# package `node`. A line that can't be had is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || set -- 20 22 24 26
for line in "$@"; do
  printf '\n-- Node %s\n' "$line"
  npx --yes -p "node@$line" -c \
    "node --version && case \$(node --version) in v$line.*) ava ;; *) exit 1 ;; esac"
done
