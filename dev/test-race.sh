#!/usr/bin/env bash
# Runs the race detector on the packages that start goroutines, without those whose tests start
# clusters: dev/nightly.sh covers all.
set -euo pipefail
cd "$(dirname "$0")/.."
clusters='switchyard/(workers/workertest|dev/temporaltest|workers/embedded|cli/stack)'
concurrent=$(grep -rlE --include='*.go' --exclude='*_test.go' '^\s*go [a-z]|\.Go\(|AfterFunc\(' activities cli drawing gateway workers workflows |
	xargs -n1 dirname | sort -u | sed 's|^|switchyard/|')
packages=$(go list -f '{{.ImportPath}} {{len .TestGoFiles}}{{len .XTestGoFiles}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
	grep -vE " 00 |$clusters( |\$)" | cut -d' ' -f1 | grep -Fx "$concurrent" | paste -sd' ')
exec dev/gotest.sh "$packages" -race -timeout 10m "$@"
