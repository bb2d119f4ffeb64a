#!/bin/sh
# Removes data and settings when the package is purged, which only dpkg can do.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
if [ "$1" = purge ]; then
	rm -rf /var/lib/switchyard /var/lib/switchyard-gateway /etc/switchyard
fi
