package stack

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"switchyard/activities/environments"
	"switchyard/activities/executor/qemu"
	"switchyard/activities/executor/qemu/disk"
	"switchyard/activities/executor/vps"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/node"
)

// virtualMachines holds the virtual machine support of a process's nodes.
type virtualMachines struct {
	// backend creates virtual machines. It is nil if the nodes cannot run any.
	backend vps.Backend
	program qemu.Program
	// withheld is the reason, for people, why there is no backend although QEMU is installed. Otherwise it is "".
	withheld string
}

// findQEMU starts to look for QEMU, concurrently with the rest of the start of nodes. It returns a function that waits
// for the result.
func findQEMU() func() (qemu.Program, error) {
	type found struct {
		program qemu.Program
		err     error
	}
	result := make(chan found, 1)
	go func() {
		program, err := qemu.Find()
		result <- found{program, err}
	}()
	return func() (qemu.Program, error) {
		f := <-result
		return f.program, f.err
	}
}

// newVirtualMachines returns the virtual machine support of the nodes, with the QEMU that find returns.
func newVirtualMachines(cfg Config, fleet string, kept *store.Store, find func() (qemu.Program, error)) virtualMachines {
	program, err := find()
	if err != nil {
		cfg.Logger.Debug("the nodes run no virtual machines", "reason", err)
		return virtualMachines{}
	}
	backend, err := newBackend(cfg, fleet, kept, program)
	if err != nil {
		cfg.Logger.Warn("the nodes run no virtual machines although QEMU is installed", "error", err)
		return virtualMachines{withheld: err.Error()}
	}
	return virtualMachines{backend: backend, program: program}
}

func newBackend(cfg Config, fleet string, kept *store.Store, program qemu.Program) (*qemu.Executor, error) {
	machines, images, err := virtualMachineFolders(cfg, fleet)
	if err != nil {
		return nil, err
	}
	base, err := disk.NewImages(disk.Options{
		CacheDir: images, Directories: cfg.Nodes[0].VMs.Images, OpenObject: store.OpenObject, Environments: environments.New(kept), Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	return qemu.New(qemu.Options{Dir: machines, Images: base, Program: program, Logger: cfg.Logger})
}

// virtualMachineFolders returns the folder for the virtual machines of a process's nodes and the folder for their
// downloaded images, on one file system. The names are short because socket paths have at most 107 bytes.
func virtualMachineFolders(cfg Config, fleet string) (machines, images string, err error) {
	sum := sha256.Sum256([]byte(fleet + "/" + cfg.Nodes[0].Name))
	parent, err := workers.StateParent(cfg.Nodes[0].ScratchDir)
	return filepath.Join(parent, fmt.Sprintf("vm-%x", sum[:4])), filepath.Join(parent, fmt.Sprintf("vm-images-%x", sum[:4])), err
}

// addTo adds the virtual machine support of the machine to its facts.
func (m virtualMachines) addTo(facts *node.Facts) {
	if m.backend != nil {
		facts.QEMU, facts.QEMUVersion, facts.KVM = true, m.program.Version, m.program.KVM
	}
}

// reasons returns the reasons that nodes report for what they withhold.
func (m virtualMachines) reasons() map[string]string {
	if m.withheld == "" {
		return nil
	}
	return map[string]string{v1.WithheldQEMU: m.withheld}
}
