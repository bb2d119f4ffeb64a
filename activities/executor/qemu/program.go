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
	// programName is QEMU for machines of this architecture, and imagesName its tool for disks.
	programName, imagesName = "qemu-system-x86_64", "qemu-img"
	// packages are Debian's of both.
	packages = "qemu-system-x86 qemu-utils"
	// oldestMajor is the first major version with the command set-action.
	oldestMajor = 6
	// findPatience bounds one call of QEMU that only looks at it.
	findPatience = 20 * time.Second
)

// Program is the QEMU of this machine.
type Program struct {
	// Path and Images are those of qemu-system-x86_64 and of qemu-img.
	Path, Images string
	// Version is such as "7.2.22".
	Version string
	// KVM reports whether the processor runs the machines, which are emulated otherwise.
	KVM bool
	// CPU is the model of their processors.
	CPU string
	// Sandbox reports whether QEMU can have the kernel refuse calls that it does not need.
	Sandbox bool
}

// versionForm matches the version in the first line of --version.
var versionForm = regexp.MustCompile(`version ((\d+)\.[0-9.]+)`)

// Find returns the QEMU of this machine. Its error says why virtual machines cannot run, and what helps.
func Find() (Program, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return Program{}, fmt.Errorf("virtual machines run on Linux on amd64 only, and this node is %s on %s", runtime.GOOS, runtime.GOARCH)
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
	// Where the node itself is a virtual machine, KVM may be there and not work.
	if p.canStart(ctx, "-accel", "kvm", "-cpu", kvmCPU) {
		p.KVM, p.CPU = true, kvmCPU
	}
	return p, nil
}

// kvmDevice is how KVM is used.
const kvmDevice = "/dev/kvm"

// emulatedCPU and kvmCPU are models of processors: with all that QEMU can emulate, and that of the node.
const emulatedCPU, kvmCPU = "max", "host"

// versionOf returns the version in the output of --version.
func versionOf(text string) (string, error) {
	found := versionForm.FindStringSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("the version of QEMU is not understood: %q", strings.TrimSpace(text))
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

// canStart reports whether a machine without disks starts with arguments. It is told to quit at once.
func (p Program) canStart(ctx context.Context, args ...string) bool {
	args = append([]string{"-machine", machineType, "-S", "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "stdio"}, args...)
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Stdin = strings.NewReader("quit\n")
	return cmd.Run() == nil
}
