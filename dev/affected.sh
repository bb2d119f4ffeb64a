#!/usr/bin/env bash
# Runs the tests of the packages that a change touches, and of those that depend on them:
#   dev/affected.sh [-n] [COMMIT] [flag of go test]...
# The change is what differs from COMMIT (default: where this branch left main, or the last commit), files that are not
# committed included. With -n, it prints the packages and runs nothing. A package depends on what it imports, and its tests
# also on the program if they build it, and on files that they name in folders without Go code. The tests of the layout of
# the module always run.
set -euo pipefail
cd "$(dirname "$0")/.."
only_print= base=
if [ "${1:-}" = -n ]; then only_print=1 && shift; fi
case ${1:-} in '' | -*) ;; *) base=$1 && shift ;; esac
[ -n "$base" ] || base=$(git merge-base HEAD main 2>/dev/null || git merge-base HEAD origin/main)
[ "$(git rev-parse "$base" 2>/dev/null)" != "$(git rev-parse HEAD)" ] || [ -n "$(git status --porcelain)" ] || base=HEAD^
if ! git rev-parse --verify --quiet "$base^{commit}" >/dev/null; then
	echo "this clone has no commit $base; usage: dev/affected.sh [-n] [COMMIT] [flag of go test]..." >&2
	exit 2
fi
changed=$({ git -c core.quotePath=off diff --name-only --no-renames "$base" &&
	git -c core.quotePath=off ls-files --others --exclude-standard; } | sort -u)

# tests_with TEXT prints the folders of the test files that contain a text.
tests_with() { git grep --untracked -lF -e "$1" -- '*_test.go' | xargs -r -d '\n' dirname; }

if grep -qE '^go\.(mod|sum)$' <<<"$changed"; then
	packages=./...
else
	# The package of a file is its folder, or the nearest folder above it with Go code. A test file, and a
	# file above all packages, concerns no importer.
	touched=$(while read -r file; do
		[ -n "$file" ] || continue
		dir=$(dirname "$file") readers=
		[[ $file == *.go ]] || readers=$(tests_with "$(grep -oE '([^/]+/)?[^/]+$' <<<"$file")" || true)
		while [ "$dir" != . ] && ! compgen -G "$dir/*.go" >/dev/null; do
			[[ $dir != */* ]] || readers+=$'\n'$(tests_with "$dir" || true)
			dir=$(dirname "$dir")
		done
		[[ $file == *_test.go || $dir/$file == ./* && $file != *.go ]] && suffix=.test || suffix=
		echo "$dir$suffix"
		sed '/./s|$|.test|' <<<"$readers"
	done <<<"$changed" | sed '/./s|^|switchyard/|; s|/\.||' | sort -u)
	packages=$(go list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./... | awk -v touched="$touched" \
		-v builders="$(tests_with 'testneeds.Program("switchyard")' | sed 's|^|switchyard/|')" '
		BEGIN {
			split(touched, list, "\n"); for (i in list) want[list[i]]
			split(builders, list, "\n"); for (i in list) builds[list[i]]
			want["switchyard.test"]
		}
		{
			package = $1
			sub(/\.test$/, "", package)
			found = $1 in want || package in want
			for (i = 2; i <= NF && !found; i++) found = $i in want
		}
		$1 == "switchyard" { program = found }
		$1 ~ /\.test$/ {
			if (found) print package
			else if (package in builds) rest[package]
		}
		END { if (program) for (package in rest) print package }' | paste -sd' ')
fi
if [ -n "$only_print" ]; then
	tr ' ' '\n' <<<"$packages"
	exit
fi
go test $packages "$@"
