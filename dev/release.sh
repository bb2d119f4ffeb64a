#!/usr/bin/env bash
# Builds what a release consists of: stripped binaries without cgo in tarballs, packages and an image of containers, and signs it.
#   dev/release.sh VERSION [--output FOLDER] [--public-key FILE | --unsigned] [SYSTEM/ARCHITECTURE ...]
# SWITCHYARD_RELEASE_KEY names the file with the secret key of minisign, and SWITCHYARD_RELEASE_KEY_PASSWORD has its password, if
# it has one. The public half of the key has to be dev/release/minisign.pub, or else FILE. The same commit, the same Go and the
# same key give the same bytes, on any machine and in any folder. Once the modules are in Go's cache, nothing is fetched.
# dev/release/doc.go lists the files.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
	echo "usage: dev/release.sh VERSION [--output FOLDER] [--public-key FILE | --unsigned] [SYSTEM/ARCHITECTURE ...]" >&2
	exit 2
}
[ $# -gt 0 ] || usage
version=${1#v}
shift
output=$root/dist
signed=(-public-key dev/release/minisign.pub)
while [ $# -gt 0 ]; do
	case $1 in
	--output | --public-key)
		[ $# -gt 1 ] || usage
		[ "$1" = --output ] && output=$2 || signed=(-public-key "$(realpath "$2")")
		shift 2
		;;
	--unsigned) signed=(-unsigned) && shift ;;
	-*) usage ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/arm64
mkdir -p "$output"
output=$(cd "$output" && pwd)
cd "$root"

commit=$(git rev-parse HEAD)
if [ -n "$(git status --porcelain)" ]; then
	commit+=+dirty
	if [ "${signed[1]:-}" = dev/release/minisign.pub ]; then
		echo "this tree differs from its commit, so it is not signed with the key of releases: commit the changes, or pass --unsigned" >&2
		exit 1
	fi
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
# The linker sets version and commit, since a tag need not exist yet.
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
stamp="-X switchyard/cli.release=$version -X switchyard/cli.commit=$commit"
(cd dev/release && go build -o "$build/release" .)
"$build/release" -check -version "$version" "${signed[@]}"
go run ./dev/manuals "$build/manuals" "$version"
binaries=()
for platform in "$@"; do
	binary=$build/switchyard-${platform%/*}-${platform#*/}
	GOOS=${platform%/*} GOARCH=${platform#*/} go build -ldflags="-s -w $stamp" -o "$binary" .
	binaries+=("$platform=$binary")
done
"$build/release" -version "$version" -commit "$commit" -time "$SOURCE_DATE_EPOCH" -source "$root" -manuals "$build/manuals" \
	-output "$output" "${signed[@]}" "${binaries[@]}"
cat "$output/SHA256SUMS"
