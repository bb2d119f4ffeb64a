#!/usr/bin/env bash
# Builds what a release consists of: stripped binaries without cgo, and their checksums.
#   dev/release.sh [--output FOLDER] [SYSTEM/ARCHITECTURE ...]
# Each binary has its version from the revision that it is built of: the tag, or a pseudo-version. A binary is the same
# whoever builds it, from the same revision with the same Go.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

output=$root/dist
if [ "${1:-}" = --output ]; then
	output=$2
	shift 2
fi
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/arm64
mkdir -p "$output"
output=$(cd "$output" && pwd)
cd "$root"

export CGO_ENABLED=0 GOFLAGS="-trimpath ${GOFLAGS:-}"
built=()
for platform in "$@"; do
	binary="switchyard-${platform%/*}-${platform#*/}"
	GOOS=${platform%/*} GOARCH=${platform#*/} go build -ldflags='-s -w' -o "$output/$binary" .
	built+=("$binary")
done
cd "$output"
sha256sum "${built[@]}" | tee SHA256SUMS
