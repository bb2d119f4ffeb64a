package definition

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// SandboxCapability is a capability that is "true" on nodes that can run shell tasks in a sandbox.
const SandboxCapability = "sandbox"

// Sandboxed reports whether a task runs in a sandbox.
func Sandboxed(task *v1.TaskDefinition) bool {
	return task.GetType() == v1.TypeShell && task.GetSpec().GetFields()["sandbox"].GetBoolValue()
}

// shellSpec checks the spec of a task of type shell.
func (d *decoder) shellSpec(spec *v1.ShellSpec, p *source.Path) {
	if at := p.Field("network"); spec.GetNetwork() != "" && !spec.GetSandbox() && !d.IsSettled(at) && !d.IsSettled(p.Field("sandbox")) {
		d.Add(d.locateKey(at), at, "spec.network is for a sandbox; a command without one has the node's network", "add sandbox: true, or leave network out")
	}
}
