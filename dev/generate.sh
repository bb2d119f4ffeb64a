#!/usr/bin/env bash
# Writes the Go code of proto/ again. Works offline: buf and its plugins are built from
# the Go module cache, and protovalidate's proto files come out of its Go module.
#   dev/generate.sh        generate
#   dev/generate.sh lint   only lint
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS= PATH="$PWD/.bin:$PATH" GOBIN="$PWD/.bin"

need() { [ -x ".bin/$1" ] || go install "$2"; }
need buf github.com/bufbuild/buf/cmd/buf@v1.75.0
need protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
need protoc-gen-connect-go connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
validate=$(go mod download -json github.com/bufbuild/protovalidate@v1.2.2 | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
cp -r proto "$work/proto"
cp -r "$validate/proto/protovalidate" "$work/protovalidate"
chmod -R u+w "$work"
rm -f "$work/proto/buf.yaml" "$work/protovalidate/buf.yaml" "$work/protovalidate/buf.lock"
# One workspace: our module with the rules of proto/buf.yaml, and protovalidate beside it.
sed 's/^breaking:/modules:\n  - path: proto\n  - path: protovalidate\nbreaking:/' proto/buf.yaml >"$work/buf.yaml"
cd "$work"
buf lint proto
[ "${1:-}" = lint ] && exit 0
cp proto/buf.gen.yaml .
buf generate proto --template buf.gen.yaml -o out
# The JSON Schema takes its texts from the comments, which the Go code does not hold.
buf build proto --path proto/switchyard/v1/definition.proto --path proto/switchyard/v1/spec.proto \
	--exclude-imports --as-file-descriptor-set -o descriptors.binpb
cd - >/dev/null
find proto -name '*.go' -path '*/v1/*' \( -name '*.pb.go' -o -name '*.connect.go' \) -delete
cp -r "$work"/out/. proto/
cp "$work/descriptors.binpb" workflows/definition/descriptors.binpb
