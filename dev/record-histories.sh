#!/usr/bin/env bash
# Records the histories of the replay test anew, for a change of behaviour of the workflows.
set -euo pipefail
cd "$(dirname "$0")/.."

histories="$PWD/workflows/testdata/histories"
rm -rf "$histories"
go test ./workers -count 1 -timeout 30m -record "$histories" -run "$(
	grep -l 'replay(t, ' workers/*_test.go | xargs awk '
		/^func Test/ { test = $2; sub(/\(.*/, "", test) }
		/replay\(t, / && test { print test; test = "" }' | sort -u | paste -sd'|' | sed 's/^/^(/; s/$/)$/'
)"
