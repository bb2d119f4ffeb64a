#!/usr/bin/env bash
# Generates the Go code of proto/, the OpenAPI document and the references in docs/. Works offline: buf and its plugins are built from the Go
# module cache, and the proto files of protovalidate and of google/api come out of Go modules.
#   dev/generate.sh             generate
#   dev/generate.sh lint        only lint
#   dev/generate.sh breaking    compare with the last release: fail if a client or a history of that one would break.
#                               Before the first release, compare with the previous commit, and only report
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS= PATH="$PWD/.bin:$PATH" GOBIN="$PWD/.bin"

need() { [ -x ".bin/$1" ] || go install "$2"; }
need buf github.com/bufbuild/buf/cmd/buf@v1.75.0
need protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
need protoc-gen-connect-go connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# module_dir MODULE prints the folder of a Go module.
module_dir() { go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p'; }
# A proxy that lists no versions of this module refuses `go install` of it.
openapi=$(module_dir github.com/sudorandom/protoc-gen-connect-openapi@v0.25.6)
[ -x .bin/protoc-gen-connect-openapi ] || go build -C "$openapi" -o "$GOBIN/protoc-gen-connect-openapi" .
validate=$(module_dir github.com/bufbuild/protovalidate@v1.2.2)
googleapis=$(module_dir github.com/gogo/googleapis@v1.4.1)

# workspace PROTO FOLDER writes a buf workspace: the module PROTO with the rules of its buf.yaml, protovalidate, and the
# annotations of google/api, whose Go code is not the one that this module names.
workspace() {
	mkdir -p "$2/googleapis/google/api"
	cp -r "$1" "$2/proto"
	cp -r "$validate/proto/protovalidate" "$2/protovalidate"
	for file in annotations http; do
		sed 's|^option go_package = .*|option go_package = "google.golang.org/genproto/googleapis/api/annotations;annotations";|' \
			"$googleapis/google/api/$file.proto" >"$2/googleapis/google/api/$file.proto"
	done
	chmod -R u+w "$2"
	rm -f "$2/proto/buf.yaml" "$2/protovalidate/buf.yaml" "$2/protovalidate/buf.lock"
	sed 's/^breaking:/modules:\n  - path: proto\n  - path: protovalidate\n  - path: googleapis\nbreaking:/' "$1/buf.yaml" >"$2/buf.yaml"
}
workspace proto "$work/new"

if [ "${1:-}" = breaking ]; then
	release=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
	before=${release:-$(git rev-parse --verify --quiet HEAD~1 || true)}
	[ -n "$before" ] || { echo "this clone has no earlier revision to compare with" >&2; exit 0; }
	mkdir "$work/tree"
	git archive "$before" proto | tar -x -C "$work/tree"
	workspace "$work/tree/proto" "$work/old"
	(cd "$work/old" && buf build proto -o "$work/old.binpb")
	(cd "$work/new" && buf build proto -o "$work/new.binpb")
	if ! buf breaking "$work/new.binpb" --against "$work/old.binpb" --config "$work/new/buf.yaml" --exclude-imports; then
		[ -z "$release" ] || { echo "these changes break what $release has promised" >&2; exit 1; }
		echo "no release has been made yet, so these changes since ${before:0:12} break no promise" >&2
	fi
	exit 0
fi

cd "$work/new"
buf lint proto
[ "${1:-}" = lint ] && exit 0
cp proto/buf.gen.yaml .
buf generate proto --template buf.gen.yaml -o "$work/out"
# The JSON Schema takes its texts from the comments, which the Go code does not hold.
buf build proto --path proto/switchyard/v1/definition.proto --path proto/switchyard/v1/spec.proto \
	--exclude-imports --as-file-descriptor-set -o "$work/descriptors.binpb"
cd - >/dev/null
find proto -name '*.go' -path '*/v1/*' \( -name '*.pb.go' -o -name '*.connect.go' \) -delete
mv "$work/out/openapi.json" "$work/openapi.json"
cp -r "$work"/out/. proto/
cp "$work/descriptors.binpb" workflows/definition/descriptors.binpb
go run ./dev/openapi -guide docs/rest.md <"$work/openapi.json" >"$work/finished.json"
cp "$work/finished.json" gateway/openapi/openapi.json
# The references of the documentation are golden files of the tests that write them.
touch docs/cli.md docs/functions.md docs/language-reference.md
go test ./cli ./workflows/condition ./workflows/definition -count=1 -run '^(TestReferenceOf|TestSchemaGolden)' -update
