#!/usr/bin/env bash
# Runs every fuzz target for a while: dev/fuzz.sh [how much: 10000x inputs, or a duration such as 1m].
# A count is what to use where a false alarm hurts: at the end of a duration `go test` now and then
# fails with "context deadline exceeded" although no input did.
set -euo pipefail
cd "$(dirname "$0")/.."
amount=${1:-10000x}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -d' ' -f2 | while read -r target; do
		echo "== $dir $target"
		go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$amount" -fuzzminimizetime 100x </dev/null
	done
done
