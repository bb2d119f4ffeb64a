#!/usr/bin/env bash
# Builds what a release consists of: stripped binaries without cgo in tarballs and packages, with their checksums.
#   dev/release.sh VERSION [--output FOLDER] [SYSTEM/ARCHITECTURE ...]
# The same commit and the same Go give the same bytes, on any machine and in any folder. Once the modules are in Go's cache,
# nothing is fetched. dev/release/doc.go lists the files.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
	echo "usage: dev/release.sh VERSION [--output FOLDER] [SYSTEM/ARCHITECTURE ...]" >&2
	exit 2
}
[ $# -gt 0 ] || usage
version=${1#v}
shift
output=$root/dist
if [ "${1:-}" = --output ]; then
	[ $# -gt 1 ] || usage
	output=$2
	shift 2
fi
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/arm64
mkdir -p "$output"
output=$(cd "$output" && pwd)
cd "$root"

commit=$(git rev-parse HEAD)
[ -z "$(git status --porcelain)" ] || commit+=+dirty
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
# The linker sets version and commit, since a tag need not exist yet.
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
stamp="-X switchyard/cli.release=$version -X switchyard/cli.commit=$commit"
go run ./dev/manuals "$build/manuals" "$version"
(cd dev/release && go build -o "$build/release" .)
binaries=()
for platform in "$@"; do
	binary=$build/switchyard-${platform%/*}-${platform#*/}
	GOOS=${platform%/*} GOARCH=${platform#*/} go build -ldflags="-s -w $stamp" -o "$binary" .
	binaries+=("$platform=$binary")
done
"$build/release" -version "$version" -commit "$commit" -time "$SOURCE_DATE_EPOCH" -source "$root" -manuals "$build/manuals" \
	-output "$output" "${binaries[@]}"
cat "$output/SHA256SUMS"
