package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"switchyard/activities/executor/container"
	"switchyard/activities/executor/qemu"
	"switchyard/workers/node"
)

func judgeCgroups(base string, err error) Finding {
	if err != nil {
		return warning("run the worker as a systemd service with Delegate=yes, or as root with cgroup2", "limits of cores and memory are not enforced for shell tasks started from here: %s", oneLine(err))
	}
	return ok("cgroup2 with the controllers that limits need, at %s", base)
}

func checkEngine(ctx context.Context) Finding {
	host, version, err := container.ProbeEngine(ctx)
	return judgeEngine(host, version, err)
}

func judgeEngine(host, version string, err error) Finding {
	switch {
	case errors.Is(err, container.ErrNoEngine):
		return skipped("no container engine is installed; tasks of type container need Docker or Podman")
	case err != nil:
		return failed("start it (`systemctl start docker`), let this user use it (group docker), or correct DOCKER_HOST", "the container engine at %s: %s", host, oneLine(err))
	}
	return ok("container engine %s at %s", version, host)
}

func (e *examination) checkGPUs(ctx context.Context) Finding {
	out, err := node.SystemSurroundings(e.Logger).Command(ctx, "nvidia-smi", "--list-gpus")
	return judgeGPUs(countGPUs(os.DirFS("/sys")), string(out), err)
}

// countGPUs returns the number of NVIDIA GPUs on the PCI bus.
func countGPUs(sys fs.FS) int {
	count := 0
	vendors, _ := fs.Glob(sys, "bus/pci/devices/*/vendor")
	for _, vendor := range vendors {
		id, _ := fs.ReadFile(sys, vendor)
		class, _ := fs.ReadFile(sys, path.Join(path.Dir(vendor), "class"))
		if strings.TrimSpace(string(id)) == "0x10de" && strings.HasPrefix(string(class), "0x03") { // display controllers of NVIDIA
			count++
		}
	}
	return count
}

func judgeGPUs(onBus int, listed string, err error) Finding {
	shown := strings.Count(listed, "GPU ")
	switch {
	case err == nil && shown > 0:
		return ok("the NVIDIA driver shows %d GPUs", shown)
	case onBus > 0 && err != nil:
		return failed("install the NVIDIA driver with nvidia-smi, and see that `nvidia-smi` lists the GPUs", "this machine has %d NVIDIA GPUs, but nvidia-smi fails: %v", onBus, err)
	case onBus > 0:
		return failed("see that `nvidia-smi` lists the GPUs for this user", "this machine has %d NVIDIA GPUs, but nvidia-smi lists none", onBus)
	}
	return skipped("this machine has no NVIDIA GPU")
}

func checkQEMU(context.Context) Finding {
	program, err := qemu.Find()
	_, kvmErr := os.Stat("/dev/kvm")
	return judgeQEMU(program, err, kvmErr == nil)
}

func judgeQEMU(program qemu.Program, err error, hasDevice bool) Finding {
	switch {
	case err != nil:
		return skipped("virtual machines cannot run: %v", err)
	case !program.KVM && hasDevice:
		return warning("let this user use /dev/kvm (`usermod -aG kvm USER`), and enable nested virtualization if this machine is virtual", "QEMU %s, but /dev/kvm cannot be used, so virtual machines are emulated and slow", program.Version)
	case !program.KVM:
		return warning("enable virtualization in the firmware, or nested virtualization on the host, and load the module kvm", "QEMU %s without /dev/kvm, so virtual machines are emulated and slow", program.Version)
	}
	return ok("QEMU %s with KVM", program.Version)
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
