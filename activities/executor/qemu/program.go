package qemu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// programName is the QEMU program for machines of this architecture; imagesName is QEMU's tool for disk images.
	programName, imagesName = "qemu-system-x86_64", "qemu-img"
	// packages lists the Debian packages of both.
	packages = "qemu-system-x86 qemu-utils"
	// oldestMajor is the first major version that has the command set-action.
	oldestMajor = 6
	// findPatience bounds all calls of QEMU in Find.
	findPatience = time.Minute
)

// Program is the QEMU installation of this node.
type Program struct {
	// Path and Images are the paths of qemu-system-x86_64 and qemu-img.
	Path, Images string
	// Version is the version, such as "7.2.22".
	Version string
	// KVM reports whether machines run on KVM rather than in emulation.
	KVM bool
	// CPU is the processor model of the machines.
	CPU string
	// Sandbox reports whether QEMU supports the options of sandbox.
	Sandbox bool
}

// versionForm matches the version in the output of --version.
var versionForm = regexp.MustCompile(`version ((\d+)\.[0-9.]+)`)

// Find returns the QEMU installation of this node. Its error explains why virtual machines cannot run and how to fix
// that.
func Find() (Program, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return Program{}, fmt.Errorf("virtual machines require Linux on amd64; this node is %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	p := Program{CPU: emulatedCPU}
	var err error
	for name, to := range map[string]*string{programName: &p.Path, imagesName: &p.Images} {
		path, lookErr := exec.LookPath(name)
		*to, err = path, errors.Join(err, lookErr)
	}
	if err != nil {
		return Program{}, fmt.Errorf("QEMU is not installed (%s); on Debian: apt install %s", strings.ReplaceAll(err.Error(), "\n", "; "), packages)
	}
	ctx, cancel := context.WithTimeout(context.Background(), findPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, p.Path, "--version").CombinedOutput()
	if err != nil {
		return Program{}, fmt.Errorf("%s --version: %w: %s", p.Path, err, bytes.TrimSpace(out))
	}
	if p.Version, err = versionOf(string(out)); err != nil {
		return Program{}, err
	}
	if p.Sandbox = p.canStart(ctx, "-sandbox", sandbox); !canOpen(kvmDevice) {
		return p, nil
	}
	// On a node that is itself a virtual machine, KVM may exist and still not work.
	if p.canStart(ctx, "-accel", "kvm", "-cpu", kvmCPU) {
		p.KVM, p.CPU = true, kvmCPU
	}
	return p, nil
}

// kvmDevice is the device file of KVM.
const kvmDevice = "/dev/kvm"

// emulatedCPU and kvmCPU are processor models: everything that QEMU can emulate, and the processor of the node.
const emulatedCPU, kvmCPU = "max", "host"

// versionOf returns the version in the output of --version.
func versionOf(text string) (string, error) {
	found := versionForm.FindStringSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("cannot parse the QEMU version: %q", strings.TrimSpace(text))
	}
	if major, err := strconv.Atoi(found[2]); err != nil || major < oldestMajor {
		return "", fmt.Errorf("QEMU %s is too old; install version %d or later", found[1], oldestMajor)
	}
	return found[1], nil
}

// canOpen reports whether this process may read and write a device.
func canOpen(path string) bool {
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return device.Close() == nil
}

// canStart reports whether a machine without disks starts with the given arguments. The machine is told to quit at
// once.
func (p Program) canStart(ctx context.Context, args ...string) bool {
	args = append([]string{"-machine", machineType, "-S", "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "stdio"}, args...)
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Stdin = strings.NewReader("quit\n")
	return cmd.Run() == nil
}
