#!/usr/bin/env bash
# Checks that need no running part: formatting, vet, determinism of workflow code,
# go.mod, the proto files and what is generated from them.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	echo "not gofmt-ed:" "$unformatted" >&2
	exit 1
fi
go vet ./...
# What is different on another system is in these; the whole binary would take minutes more.
GOOS=windows GOARCH=amd64 go build ./activities/... ./workers/node/...
[ -x .bin/workflowcheck ] || GOBIN="$PWD/.bin" go install go.temporal.io/sdk/contrib/tools/workflowcheck@v0.6.0
.bin/workflowcheck ./workflows/...
# The binary builds without cgo as long as only the standard library uses it.
cgo=$(go list -deps -f '{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}' .)
if [ -n "$cgo" ]; then
	echo "these need cgo:" "$cgo" >&2
	exit 1
fi

before=$(git status --porcelain)
go mod tidy
dev/generate.sh
if [ "$before" != "$(git status --porcelain)" ] || ! git diff --quiet -- go.mod go.sum proto; then
	echo "stale: run dev/generate.sh and go mod tidy, and commit what they change" >&2
	git --no-pager diff --stat >&2
	exit 1
fi
