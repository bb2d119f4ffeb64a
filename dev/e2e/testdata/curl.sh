#!/usr/bin/env bash
# Takes runs through their lives by curl alone: curl.sh GATEWAY
set -euo pipefail
gateway=$1

call() { curl -sS --fail-with-body --max-time 300 "$@"; }
# field NAME prints the first string of that name in a JSON document.
field() { tr -d '\n' | grep -oE "\"$1\": *\"[^\"]*\"" | head -n 1 | sed -E 's/^"[^"]*": *"(.*)"$/\1/'; }
# expect TEXT fails unless its input has the text.
expect() {
	local got
	got=$(cat)
	grep -qF -- "$1" <<<"$got" || { printf 'no %s in:\n%s\n' "$1" "$got" >&2; exit 1; }
}

# Submit: a definition in YAML is the body. The same key again starts nothing.
submit() {
	call -X POST "$gateway/v1/runs" -H 'Content-Type: application/yaml' -H "Idempotency-Key: $1" --data-binary @- | field id
}
short=$(submit curl-short <<'YAML'
name: curl-short
tasks:
  greet: { type: shell, spec: { command: "echo hello from curl" } }
YAML
)
again=$(submit curl-short <<'YAML'
name: curl-short
tasks:
  greet: { type: shell, spec: { command: "echo hello from curl" } }
YAML
)
[ -n "$short" ] && [ "$short" = "$again" ] || { echo "submitted $short, then $again" >&2; exit 1; }

# Watch: the stream ends with the run.
call -N "$gateway/v1/runs/$short/events" -H 'Accept: text/event-stream' | expect 'event: end'
call "$gateway/v1/runs/$short" | expect '"completed"'

# Logs, as a stream and as a page.
call -N "$gateway/v1/runs/$short/tasks/greet/logs?follow=true" | expect 'hello from curl'
call "$gateway/v1/runs/$short/tasks/greet/logs" | expect 'hello from curl'
call "$gateway/v1/runs/$short/tasks" | expect '"greet"'

# One task by itself, twice with one key.
task() { call -X POST "$gateway/v1/tasks" -H 'Idempotency-Key: curl-task' -d '{"type": "shell", "spec": {"command": "true"}}'; }
one=$(task | field id)
task | expect "\"$one\""

# Store a workflow, trigger it, and cancel what runs.
call -X PUT "$gateway/v1/workflows/curl-long" -H 'Content-Type: application/yaml' --data-binary @- <<'YAML' | expect '"curl-long"'
name: curl-long
inputs:
  seconds: { type: integer, default: 600 }
tasks:
  wait: { type: shell, spec: { command: "sleep ${{ workflow.input.seconds }}" } }
YAML
long=$(call -X POST "$gateway/v1/workflows/curl-long/trigger" -H 'Content-Type: application/json' -d '{"seconds": 900}' | field id)
call -X POST "$gateway/v1/runs/$long/cancel" -H 'Content-Type: application/json' -d '{"reason": "enough"}' | expect "$long"
call -N "$gateway/v1/runs/$long/events?follow=true" | expect 'event: end'
call "$gateway/v1/runs/$long" | expect '"cancelled"'

# List. A run is found soon after it started.
for _ in $(seq 300); do
	call "$gateway/v1/runs?name=curl-long&state=cancelled" | grep -qF "$long" && break || sleep 1
done
call "$gateway/v1/runs?name=curl-long&state=cancelled" | expect "$long"

# Errors have one form.
! call "$gateway/v1/runs/no-such-run" >/dev/null
curl -sS "$gateway/v1/runs/no-such-run" | expect '"not_found"'
curl -sS -X POST "$gateway/v1/runs/$long/cancel" | expect '"aborted"'
curl -sS "$gateway/v1/no-such-path" | expect '"code"'
curl -sS -o /dev/null -w '%{http_code}' -X POST "$gateway/v1/runs/$long/cancel" | expect 409
