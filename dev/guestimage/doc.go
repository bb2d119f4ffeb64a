// Package guestimage builds a small virtual machine for tests: a bootable qcow2 image of 20 MB with Debian's cloud kernel,
// busybox, dropbear and sftp-server. Like a cloud image, it takes its name, users and keys from a NoCloud seed. [Build]
// returns the image, and [Start] boots it without Switchyard's executor.
//
// The guest reacts to the power button, unless the image is that of [BuildDeaf] or the file /run/no_acpi exists in it. It
// keeps /root, /home and /data on its disk; all other files are lost when it stops. Besides root it has a user named guest,
// and creates those that the seed names.
//
// Only tests import it. Of this module it may import activities/filelock and dev/testneeds.
package guestimage
