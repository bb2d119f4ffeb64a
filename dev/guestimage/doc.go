// Package guestimage has a small virtual machine for tests: a bootable qcow2 image of 20 MB with the kernel of Debian's
// clouds, busybox, dropbear and sftp-server, which takes its name, users and keys from a NoCloud seed as a cloud's image
// does. [Build] returns the image, and [Start] boots it without the executor of Switchyard.
//
// The guest answers the power button, unless the image is that of [BuildDeaf] or /run/no_acpi exists in it. It keeps /root,
// /home and /data on its disk; every other file is lost when it stops. Besides root it has a user named guest, and creates
// those that the seed names.
//
// Only tests import it. Of this module it may import activities/filelock and dev/testneeds.
package guestimage
