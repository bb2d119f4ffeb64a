#!/bin/sh
# Creates the user of the gateway, who owns files of the package.
set -e
getent group switchyard >/dev/null || groupadd --system switchyard
getent passwd switchyard >/dev/null || useradd --system --gid switchyard --no-create-home \
	--home-dir /var/lib/switchyard-gateway --shell /usr/sbin/nologin switchyard
