#!/usr/bin/env bash
# Builds two bootable images for tests of virtual machines, guest.qcow2 and deaf.qcow2, in the working folder. The guest's
# files are in the folder of this script. dev/guestimage runs it in an empty folder.
set -euo pipefail
guest=$(dirname "$(readlink -f "$0")")/guest
export PATH="$PATH:/usr/sbin:/sbin"

# A machine that has never fetched the lists of packages, or whose lists are older than the mirror, fetches them.
fetch() {
	kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/{print $2; exit}')
	[ -n "$kernel" ] && apt-get download -q "$kernel" syslinux-common
}
fetch || { apt-get update -q && fetch; }
for package in ./*.deb; do dpkg-deb -x "$package" packages; done
version=$(ls packages/lib/modules)
modules=packages/lib/modules/$version
busybox depmod -b packages "$version"

# The root file system is an initramfs: busybox, dropbear, sftp-server and the modules of virtual machines.
mkdir -p root/{bin,sbin,dev,proc,sys,etc/dropbear,etc/acpi/PWRF,root,home,tmp,run,mnt,data,var/log,usr/bin,usr/lib/openssh}
mkdir -p "root/lib/modules/$version"
chmod 1777 root/tmp
# install_program FILE FOLDER copies a program and its libraries.
install_program() {
	cp "$1" "root/$2/"
	for library in $(ldd "$1" 2>/dev/null | grep -oE '/[^ ]+' || true); do
		mkdir -p "root/$(dirname "$library")"
		cp -Ln "$library" "root/$library"
	done
}
install_program "$(command -v busybox)" bin
install_program "$(command -v dropbear)" sbin
install_program "$(command -v dropbearkey)" usr/bin
install_program "$(command -v dropbearconvert)" usr/bin
install_program /usr/lib/openssh/sftp-server usr/lib/openssh
ln -s openssh/sftp-server root/usr/lib/sftp-server
for module in virtio_pci virtio_net virtio_blk isofs sr_mod ata_piix button evdev; do
	grep -E "/$module\.ko:" "$modules/modules.dep" | tr -d : | tr ' ' '\n'
done | sort -u >needed
tar -C "$modules" -cf - -T "$PWD/needed" modules.dep | tar -C "root/lib/modules/$version" -xf -
cp "$guest/init" "$guest/read-seed" "$guest/udhcpc-script" root/sbin/
cp "$guest/inittab" root/etc/inittab
cp "$guest/power-down" root/etc/acpi/PWRF/00000080
ln -s sbin/init root/init
chmod 755 root/sbin/{init,read-seed,udhcpc-script} root/etc/acpi/PWRF/00000080
(cd root && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null | gzip -1 >../initrd)

# A disk has a boot sector, a FAT partition with the boot loader, and an ext4 partition that keeps the guest's files.
boot_at=1 boot_mib=40 data_at=41 data_mib=471
entry() { # TYPE ACTIVE START SIZE in MiB: an entry of the partition table
	local n bytes
	printf -v bytes '\\x%s\\xfe\\xff\\xff\\x%s\\xfe\\xff\\xff' "$2" "$1"
	for n in $(($3 * 2048)) $(($4 * 2048)); do
		printf -v bytes '%s\\x%02x\\x%02x\\x%02x\\x%02x' "$bytes" $((n & 255)) $((n >> 8 & 255)) $((n >> 16 & 255)) $((n >> 24 & 255))
	done
	printf "$bytes"
}
{
	head -c 440 packages/usr/lib/syslinux/mbr/mbr.bin
	printf '\x53\x59\x47\x49\0\0'
	entry 0e 80 $boot_at $boot_mib
	entry 83 00 $data_at $data_mib
	head -c 32 /dev/zero
	printf '\x55\xaa'
} >boot-sector
truncate -s ${data_mib}M data
mke2fs -q -t ext4 -L data -m 0 -J size=4 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard data
for image in guest deaf; do
	append="console=ttyS0 quiet initrd=initrd"
	[ $image = guest ] || append="$append no_acpi"
	printf 'DEFAULT linux\nPROMPT 0\nTIMEOUT 0\nLABEL linux\n KERNEL vmlinuz\n APPEND %s\n' "$append" >syslinux.cfg
	rm -f boot disk
	truncate -s ${boot_mib}M boot
	mkfs.vfat -n BOOT -h $((boot_at * 2048)) boot >/dev/null
	mcopy -i boot packages/boot/vmlinuz* ::vmlinuz
	mcopy -i boot initrd ::initrd
	mcopy -i boot syslinux.cfg ::syslinux.cfg
	syslinux --install boot
	truncate -s $((data_at + data_mib))M disk
	dd if=boot-sector of=disk conv=notrunc status=none
	dd if=boot of=disk bs=1M seek=$boot_at conv=notrunc,sparse status=none
	dd if=data of=disk bs=1M seek=$data_at conv=notrunc,sparse status=none
	qemu-img convert -f raw -O qcow2 disk $image.qcow2
done
