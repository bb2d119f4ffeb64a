#!/usr/bin/env bash
# Records the histories of the replay test anew, for a change of behaviour of the workflows.
set -euo pipefail
cd "$(dirname "$0")/.."

histories="$PWD/workflows/testdata/histories"
rm -rf "$histories"
go test ./workers ./workflows/run -count 1 -timeout 30m -record "$histories" -run "$(
	grep -l 'workertest.Replay(t, ' workers/*_test.go workflows/run/*_test.go | xargs awk '
		/^func Test/ { test = $2; sub(/\(.*/, "", test) }
		/workertest\.Replay\(t, / && test { print test; test = "" }' | sort -u | paste -sd'|' | sed 's/^/^(/; s/$/)$/'
)"
