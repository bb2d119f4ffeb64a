#!/bin/sh
# Restarts what runs, after an upgrade. Nodes drain first, for up to drainTimeout, so nothing waits for them here.
# dpkg calls `configure OLD-VERSION`, and rpm 2.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if [ "$1" = configure ] && [ -n "$2" ] || [ "$1" = 2 ]; then
	systemctl --no-block try-restart switchyard-gateway.service 'switchyard-worker@*.service'
fi
