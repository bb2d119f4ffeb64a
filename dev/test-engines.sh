#!/usr/bin/env bash
# Runs the tests that need more than Go: Docker, QEMU, chromium, npm, OpenSSH, cgroups or root. What is missing is an
# error. CONTRIBUTING.md says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."
# One package at a time, with four tests: browsers, engines and machines need whole processors, and time out where many run at once.
exec dev/tagged.sh engines -timeout 25m -p 1 -parallel 4 "$@"
