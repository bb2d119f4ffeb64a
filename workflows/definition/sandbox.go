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

// shellRules checks the specs of tasks of type shell.
type shellRules struct{ *decoder }

// check checks the spec of a task of type shell.
func (r shellRules) check(spec *v1.ShellSpec, p *source.Path) {
	if at := p.Field("network"); spec.GetNetwork() != "" && !spec.GetSandbox() && !r.IsSettled(at) && !r.IsSettled(p.Field("sandbox")) {
		r.Add(r.locateKey(at), at, "spec.network is for a sandbox; a command without one has the node's network", "add sandbox: true, or leave network out")
	}
}
