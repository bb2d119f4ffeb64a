#!/bin/sh
# Becomes the systemd of a machine: boot.sh ROOT CGROUP. It runs in namespaces of its own. CGROUP is a folder of cgroup2, which needs no
# controller. Settings of the kernel are read-only, because they are those of the host.
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs dev
for node in null zero full random urandom tty; do touch dev/$node; mount --bind /dev/$node dev/$node; done
mkdir dev/pts dev/shm
mount -t devpts devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
echo 0 > "$2/cgroup.procs"
exec unshare --cgroup sh -ec 'mount -t cgroup2 cgroup2 sys/fs/cgroup; exec chroot . env -i container=docker /sbin/init'
