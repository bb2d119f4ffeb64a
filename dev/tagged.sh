#!/usr/bin/env bash
# Runs the tests of the files with a build tag: dev/tagged.sh TAG [flag of go test]...
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:-}
# dev/release is a module of its own, which .ci/run tests.
files=$(grep -rlE --include='*_test.go' "^//go:build ([^!]* )?$tag( .*)?\$" . | grep -v '^\./dev/release/' || true)
if [ -z "$tag" ] || [ -z "$files" ]; then
	echo "no test has the build tag \"$tag\"; usage: dev/tagged.sh engines|kubernetes [flag of go test]..." >&2
	exit 2
fi
shift
names=$(grep -ohE '^func Test[A-Za-z0-9_]+' $files | cut -d' ' -f2 | grep -vx TestMain | sort -u | paste -sd'|')
packages=$(dirname $files | sort -u | paste -sd' ')
exec dev/gotest.sh "$packages" -tags "$tag" -run "^($names)\$" "$@"
