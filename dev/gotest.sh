#!/usr/bin/env bash
# Runs tests as CI does: dev/gotest.sh "PACKAGES" [flag of go test]...
# If at most ten tests fail, as on an overloaded machine, each runs once more, alone. One that passes then is reported as
# FLAKY with its first output, and does not fail the step. A package that fails although none of its tests did, such as one
# whose goroutines remain, fails the step. The report ends with the slowest tests.
set -uo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo 'usage: dev/gotest.sh "PACKAGES" [flag of go test]...' >&2; exit 2; }
events=$(mktemp)
trap 'rm -f "$events"' EXIT
packages=$1
shift
go tool gotestsum --format pkgname --hide-summary skipped --jsonfile "$events" \
	--rerun-fails=1 --rerun-fails-max-failures=10 --packages "$packages" -- "$@"
status=$?
go run ./dev/testreport "$events" || status=1
exit "$status"
