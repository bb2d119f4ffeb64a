package qemu

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// codeCacheMB bounds the translated code of an emulated machine, which QEMU would let grow to 1 GiB.
const codeCacheMB = 128

// machineType is the machine model that QEMU emulates.
const machineType = "q35"

// sandbox makes the kernel refuse system calls that QEMU never needs for a machine.
const sandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

// arguments returns the QEMU command line of a machine whose files are in folder f.
func arguments(program Program, p plan, f folder) []string {
	args := []string{
		program.Path, "-name", "switchyard-" + filepath.Base(string(f)), "-nodefaults", "-no-user-config", "-display", "none", "-machine", machineType,
	}
	if program.KVM {
		args = append(args, "-accel", "kvm")
	} else {
		args = append(args, "-accel", fmt.Sprintf("tcg,thread=multi,tb-size=%d", codeCacheMB))
	}
	args = append(args,
		"-cpu", program.CPU,
		"-smp", strconv.Itoa(p.cpus), "-m", strconv.Itoa(p.memoryMB)+"M",
		"-drive", "if=none,id=disk,format=qcow2,discard=unmap,detect-zeroes=unmap,file="+quoteOption(f.file(diskFile)),
		"-device", "virtio-blk-pci,drive=disk,bootindex=0",
		"-drive", "if=none,id=seed,format=raw,readonly=on,file="+quoteOption(f.file(seedFile)),
		"-device", "virtio-blk-pci,drive=seed",
		"-netdev", network(p), "-device", "virtio-net-pci,netdev=network,romfile=",
		"-device", "virtio-rng-pci",
		"-chardev", "file,id=console,path=/dev/stdout", "-serial", "chardev:console",
	)
	for _, name := range []string{socketFile, socketFile2} {
		args = append(args, "-qmp", "unix:"+quoteOption(f.file(name))+",server=on,wait=off")
	}
	if program.Sandbox {
		args = append(args, "-sandbox", sandbox)
	}
	return args
}

// network returns the network option of a machine. QEMU picks a free port by itself.
func network(p plan) string {
	text := "user,id=network,net=10.0.2.0/24,dhcpstart=" + v1.GuestAddress + ",hostfwd=tcp:127.0.0.1:0-:22"
	if p.isAlone {
		text += ",restrict=on"
	}
	return text
}

// quoteOption escapes a value for use in a comma-separated list of options.
func quoteOption(value string) string { return strings.ReplaceAll(value, ",", ",,") }
