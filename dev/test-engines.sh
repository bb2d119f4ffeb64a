#!/usr/bin/env bash
# Runs the tests that need more than Go: Docker, QEMU, chromium, npm, OpenSSH, cgroups or root. What is missing is an
# error. CONTRIBUTING.md says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."
exec dev/tagged.sh engines -timeout 15m "$@"
