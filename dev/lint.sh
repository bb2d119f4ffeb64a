#!/usr/bin/env bash
# Checks that need no running part: formatting, words, vet, other systems, determinism of workflow code, go.mod, the proto
# files and what is generated from them.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	echo "not gofmt-ed:" "$unformatted" >&2
	exit 1
fi
# States, reasons, events and types are constants of states.go and task_types.go in proto/switchyard/v1. What may be written out is no such
# word: aliases and fields of expressions, verbs for people, headings, names of JSON fields, names of filters, and words of QEMU.
# Package metrics may not import the data model.
words='pending|pending_approval|queued|assigned|running|paused|completed|stopped|skipped|failed|killed|killed_oom|lost'
words="$words|dead_letter|rejected|cancelled|stale|draining|offline|dead_lettered|reassigned|node_lost|exit_code|no_room"
words="$words|no_executor|not_picked_up|not_started|lease_lost|start_failed|bad_spec|k8s_job|subagent|claude_relay"
allowed='^[^:]*:[0-9]+:[[:space:]]*//|By\("(cancelled|killed|rejected)", |`json:"|errors\.New\("cancelled"\)'
allowed="$allowed|^drawing/words/fan_out\.go:.*, \"[a-z]+\"},\$|^drawing/timeline/reason\.go:|^(cli/tui|drawing/svg)/(lane|legend)\.go:.*\"queued\"|^gateway/web/stream\.go:.*out\.send\(\"failed\"|^cli/runs_get_task\.go:.*\{\"created\", "
allowed="$allowed|^workflows/core/dag/describe\.go:.*phrase := "
allowed="$allowed|^workflows/definition/alias_words\.go:.*[[:space:]]case \"|^activities/taskrunner/ancestors\.go:.*shown\[\""
allowed="$allowed|^gateway/rest/foreign_fields\.go:.*\"enabled\", \"paused\"|^activities/executor/qemu/monitor\.go:.*state(Paused|Running) +="
literals=$(git grep -nE "\"($words)\"" -- '*.go' ':!*_test.go' ':!dev' ':!proto' ':!workflows/condition' ':!activities/metrics' \
	':!activities/executor/executortest' |
	grep -vE "$allowed" || true)
if [ -n "$literals" ]; then
	printf 'these words are constants of proto/switchyard/v1/states.go or task_types.go:\n%s\n' "$literals" >&2
	exit 1
fi
# Comments name who acts, and begin with a verb.
unclear=$(git grep -nEi '(^|[[:space:]])//.*\b((says|tells) whether|nobody|somebody|anybody|go(es)? on)\b' -- '*.go' '*.proto' \
	':!*.pb.go' ':!*.connect.go' || true)
if [ -n "$unclear" ]; then
	printf 'a predicate "reports whether", code has no "nobody", and what "goes on" continues:\n%s\n' "$unclear" >&2
	exit 1
fi
# A comment of a function begins with what the function does.
nouns=$(git ls-files '*.go' ':!*.pb.go' ':!*.connect.go' | xargs awk '
	/^\/\// { if (first == "") { first = $0; line = FNR } next }
	/^func / {
		name = $0
		sub(/^func (\([^)]*\) )?/, "", name)
		sub(/[^A-Za-z0-9_].*/, "", name)
		if (first ~ "^// " name " (is|are) ") print FILENAME ":" line ": " first
	}
	{ first = "" }')
if [ -n "$nouns" ]; then
	printf 'a comment of a function begins with a verb, such as "returns", "starts" or "reports whether":\n%s\n' "$nouns" >&2
	exit 1
fi
go vet ./...
# The tests of engines and Kubernetes, too.
go vet -tags "engines kubernetes" ./...
# Releases are for Linux and macOS. What runs a task on a node also builds for Windows.
go run ./dev/typecheck windows/amd64 ./activities/... ./workers/node/...
go run ./dev/typecheck darwin/arm64 . ./activities/...
[ -x .bin/workflowcheck ] || GOBIN="$PWD/.bin" go install go.temporal.io/sdk/contrib/tools/workflowcheck@v0.6.0
.bin/workflowcheck ./workflows/...
# The binary builds without cgo as long as only the standard library uses it.
cgo=$(go list -deps -f '{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}' .)
if [ -n "$cgo" ]; then
	echo "these need cgo:" "$cgo" >&2
	exit 1
fi

# The Kubernetes for tests is a module of its own. Vetting all of it would take minutes.
(cd dev/kubernetes && go mod tidy -diff && go vet ./fakekubelet)

dev/generate.sh breaking
# Runs of the last release replay its histories; new behaviour adds histories beside them.
release=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
if [ -n "$release" ]; then
	changed=$(git diff --name-only --diff-filter=MDR "$release" -- workflows/testdata/histories)
	if [ -n "$changed" ]; then
		printf 'these histories of %s have changed, so runs that it started may not continue:\n%s\n' "$release" "$changed" >&2
		exit 1
	fi
fi
go run ./dev/changes check
before=$(git status --porcelain)
go mod tidy
dev/generate.sh
if [ "$before" != "$(git status --porcelain)" ] || ! git diff --quiet -- go.mod go.sum proto docs gateway/openapi workflows/definition; then
	echo "stale: run dev/generate.sh and go mod tidy, and commit what they change" >&2
	git --no-pager diff --stat >&2
	exit 1
fi
