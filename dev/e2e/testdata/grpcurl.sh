#!/usr/bin/env bash
# Takes runs through their lives by grpcurl, which learns the API by reflection: grpcurl.sh GRPCURL HOST:PORT
set -euo pipefail
grpcurl=$1 address=$2

call() { "$grpcurl" -plaintext -max-time 300 -d "$1" "$address" "switchyard.v1.$2"; }
field() { tr -d '\n' | grep -oE "\"$1\": *\"[^\"]*\"" | head -n 1 | sed -E 's/^"[^"]*": *"(.*)"$/\1/'; }
expect() {
	local got
	got=$(cat)
	grep -qF -- "$1" <<<"$got" || { printf 'no %s in:\n%s\n' "$1" "$got" >&2; exit 1; }
}

for service in RunService WorkflowService NodeService; do
	"$grpcurl" -plaintext "$address" list | expect "switchyard.v1.$service"
	"$grpcurl" -plaintext "$address" describe "switchyard.v1.$service" | expect 'google.api.http'
done
"$grpcurl" -plaintext "$address" describe switchyard.v1.SubmitRunRequest | expect 'string document'

short=$(call '{"document": "name: grpc-short\ntasks:\n  greet: { type: shell, spec: { command: echo hello from grpcurl } }\n"}' RunService/SubmitRun | field id)
call "{\"id\": \"$short\"}" RunService/WatchRun | expect '"completed"'
call "{\"id\": \"$short\", \"follow\": true}" RunService/StreamRunLogs | expect "$(printf 'hello from grpcurl\n' | base64)"

long=$(call '{"document": "name: grpc-long\ntasks:\n  wait: { type: shell, spec: { command: sleep 600 } }\n"}' RunService/SubmitRun | field id)
call "{\"id\": \"$long\", \"reason\": \"enough\"}" RunService/CancelRun | expect "$long"
call "{\"id\": \"$long\"}" RunService/WatchRun | expect '"cancelled"'
for _ in $(seq 300); do
	call '{"name": "grpc-long", "state": "cancelled"}' RunService/ListRuns | grep -qF "$long" && break || sleep 1
done
call '{"name": "grpc-long", "state": "cancelled"}' RunService/ListRuns | expect "$long"
