package qemu

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// defaultUser is the login user of a machine whose spec names none.
	defaultUser = "root"
	// defaultMemoryMB is the memory of a machine whose spec sets none.
	defaultMemoryMB = 1024
	// minMemoryMB is what firmware and a kernel need to start.
	minMemoryMB = 64
	// noNetwork is the network of an isolated machine.
	noNetwork = "none"
)

// plan describes the machine that an attempt asks for.
type plan struct {
	// image is the base image of the disk: a path, a URL or the name of an environment.
	image string
	// diskSize is a size such as "50G", or empty for the size of the image.
	diskSize string
	// user logs in with keys, one per line. Sessions start in dir, or in the user's home if dir is empty.
	user, dir string
	keys      []string
	// cpus is the number of processors; memoryMB is the memory in MiB.
	cpus, memoryMB int
	// isAlone keeps the machine from reaching its node and other computers.
	isAlone bool
}

// newPlan returns the plan for the spec and limits of an attempt. Its error means that the spec is at fault.
func newPlan(a executor.Attempt) (plan, error) {
	spec := &v1.VpsSpec{}
	if err := container.DecodeSpec(a.Spec, spec); err != nil {
		return plan{}, err
	}
	p := plan{
		image: cmp.Or(spec.GetVmImage(), spec.GetEnvironment()), diskSize: spec.GetVmDiskSize(),
		user: cmp.Or(spec.GetUser(), defaultUser), dir: spec.GetWorkingDirectory(),
		cpus: max(1, int(math.Ceil(a.Limits.Cores))), memoryMB: int(a.Limits.Memory >> 20), isAlone: spec.GetNetwork() == noNetwork,
	}
	for line := range strings.Lines(spec.GetSshPublicKey()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			p.keys = append(p.keys, line)
		}
	}
	if p.memoryMB == 0 {
		p.memoryMB = defaultMemoryMB
	}
	switch {
	case p.image == "":
		return plan{}, errors.New("set vmImage or environment")
	case !p.isAlone && spec.GetNetwork() != "":
		return plan{}, fmt.Errorf("network %q is only for containers; a virtual machine has its own network, or %q", spec.GetNetwork(), noNetwork)
	case p.memoryMB < minMemoryMB:
		return plan{}, fmt.Errorf("resources.memoryMb is %d; a virtual machine needs %d at least", p.memoryMB, minMemoryMB)
	case p.dir != "" && !path.IsAbs(p.dir):
		return plan{}, fmt.Errorf("workingDirectory %q is not an absolute path in the machine", p.dir)
	}
	return p, nil
}
