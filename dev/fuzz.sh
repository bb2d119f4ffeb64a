#!/usr/bin/env bash
# Runs every fuzz target for a while: dev/fuzz.sh [duration, such as 30s].
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-30s}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -d' ' -f2 | while read -r target; do
		echo "== $dir $target"
		go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" </dev/null
	done
done
