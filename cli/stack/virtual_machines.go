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

// virtualMachines is what the nodes of a process have of virtual machines.
type virtualMachines struct {
	// backend makes them; nil: nothing does.
	backend vps.Backend
	program qemu.Program
	// withheld is why there is no backend although QEMU is there, for people; "": there is one, or no QEMU.
	withheld string
}

// findQEMU looks for QEMU beside what else the start of nodes does, and returns what waits for the result.
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

// newVirtualMachines returns the virtual machines of the nodes, by the QEMU that a function returns.
func newVirtualMachines(cfg Config, fleet string, kept *store.Store, find func() (qemu.Program, error)) virtualMachines {
	program, err := find()
	if err != nil {
		cfg.Logger.Debug("the nodes run no virtual machines", "reason", err)
		return virtualMachines{}
	}
	machines, images := virtualMachineFolders(cfg, fleet)
	base, err := disk.NewImages(disk.Options{
		CacheDir: images, Directories: cfg.Nodes[0].VMs.Images, OpenObject: store.OpenObject, Environments: environments.New(kept), Logger: cfg.Logger,
	})
	if err == nil {
		var backend *qemu.Executor
		if backend, err = qemu.New(qemu.Options{Dir: machines, Images: base, Program: program, Logger: cfg.Logger}); err == nil {
			return virtualMachines{backend: backend, program: program}
		}
	}
	cfg.Logger.Warn("the nodes run no virtual machines, although QEMU is there", "error", err)
	return virtualMachines{withheld: err.Error()}
}

// virtualMachineFolders returns the folders of the virtual machines of a process's nodes, and of the images that they have
// downloaded, on one file system. The names are short: the paths of sockets have 107 bytes at most.
func virtualMachineFolders(cfg Config, fleet string) (machines, images string) {
	sum := sha256.Sum256([]byte(fleet + "/" + cfg.Nodes[0].Name))
	parent := workers.StateParent(cfg.Nodes[0].ScratchDir)
	return filepath.Join(parent, fmt.Sprintf("vm-%x", sum[:4])), filepath.Join(parent, fmt.Sprintf("vm-images-%x", sum[:4]))
}

// addTo adds what the machine has of virtual machines to its facts.
func (m virtualMachines) addTo(facts *node.Facts) {
	if m.backend != nil {
		facts.QEMU, facts.QEMUVersion, facts.KVM = true, m.program.Version, m.program.KVM
	}
}

// reasons returns what nodes say of what they withhold.
func (m virtualMachines) reasons() map[string]string {
	if m.withheld == "" {
		return nil
	}
	return map[string]string{v1.WithheldQEMU: m.withheld}
}
