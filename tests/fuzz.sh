#!/usr/bin/env bash
# Runs every fuzz target of the repository for the given time each.
set -euo pipefail
cd "$(dirname "$0")/.."
for file in $(git grep -lE '^func Fuzz' -- '*_test.go'); do
  for target in $(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | awk '{print $2}'); do
    echo "== $target in $(dirname "$file")"
    go test -C "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${1:-20s}" .
  done
done
