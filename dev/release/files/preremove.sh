#!/bin/sh
# Stops and disables the services before the package is removed: dpkg calls `remove`, and rpm 0.
set -e
[ "$1" = remove ] || [ "$1" = 0 ] || exit 0
[ -d /run/systemd/system ] || exit 0
systemctl stop 'switchyard-worker@*.service' switchyard-gateway.service
systemctl --quiet disable switchyard-worker@.service switchyard-gateway.service
