#!/usr/bin/env bash
# Runs the long tests, and the properties of the run's core with more cases.
set -euo pipefail
cd "$(dirname "$0")/.."
export SWITCHYARD_LONG=1
go test -timeout 60m -run '^TestLong' ./...
go test -timeout 60m ./workflows/dag
