#!/usr/bin/env bash
# Runs the tests of the packages that a change touches, and of those that import them:
#   dev/affected.sh [COMMIT [flag of go test]...]
# The change is what differs from COMMIT (default: where this branch left main, or the last commit), files that are not
# committed included. With -n as the first argument, it prints the packages and runs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
only_print=
if [ "${1:-}" = -n ]; then only_print=1 && shift; fi
base=${1:-$(git merge-base HEAD main)}
[ $# = 0 ] || shift
[ "$(git rev-parse "$base")" != "$(git rev-parse HEAD)" ] || [ -n "$(git status --porcelain)" ] || base=HEAD^
changed=$({ git diff --name-only "$base" && git ls-files --others --exclude-standard; } | sort -u)
if grep -qE '^go\.(mod|sum)$' <<<"$changed"; then
	packages=./...
else
	# The package of a file is its folder, or the nearest folder above it with Go code. A test file concerns no importer.
	touched=$(while read -r file; do
		dir=$(dirname "$file")
		while [ "$dir" != . ] && ! compgen -G "$dir/*.go" >/dev/null; do dir=$(dirname "$dir"); done
		[[ $file == *_test.go ]] && suffix=.test || suffix=
		echo "switchyard/$dir$suffix" | sed 's|/\.||'
	done <<<"$changed" | sort -u)
	packages=$(go list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./... | awk -v touched="$touched" '
		BEGIN { split(touched, list, "\n"); for (i in list) want[list[i]] }
		$1 ~ /\.test$/ {
			package = substr($1, 1, length($1) - 5)
			found = $1 in want || package in want
			for (i = 2; i <= NF && !found; i++) found = $i in want
			if (found) print package
		}' | paste -sd' ')
fi
if [ -n "$only_print" ] || [ -z "$packages" ]; then
	tr ' ' '\n' <<<"$packages"
	exit
fi
go test $packages "$@"
