package definition

import (
	"maps"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// SandboxCapability is "true" of nodes that can run shell tasks in a sandbox.
const SandboxCapability = "sandbox"

// Sandboxed reports whether a task asks for a sandbox.
func Sandboxed(task *v1.TaskDefinition) bool {
	return task.GetType() == v1.TypeShell && task.GetSpec().GetFields()["sandbox"].GetBoolValue()
}

// shellSpec checks the spec of a task of type shell.
func (d *decoder) shellSpec(spec *v1.ShellSpec, p *source.Path) {
	if at := p.Field("network"); spec.GetNetwork() != "" && !spec.GetSandbox() && !d.IsSettled(at) && !d.IsSettled(p.Field("sandbox")) {
		d.Add(d.locateKey(at), at, "spec.network is for a sandbox; a command without one has the node's network", "add sandbox: true, or leave network out")
	}
}

// Constraints are those of a task, with what its spec needs of a node. They are not to be changed.
func Constraints(task *v1.TaskDefinition) *v1.Constraints {
	said := task.GetConstraints()
	needed := neededCapability(task)
	if needed == "" {
		return said
	}
	if _, ok := said.GetRequiresCapabilities()[needed]; ok {
		return said
	}
	c := &v1.Constraints{}
	if said != nil {
		c = proto.CloneOf(said)
	}
	c.RequiresCapabilities = maps.Clone(c.RequiresCapabilities)
	if c.RequiresCapabilities == nil {
		c.RequiresCapabilities = map[string]string{}
	}
	c.RequiresCapabilities[needed] = "true"
	return c
}

// neededCapability returns the capability that the spec of a task needs, or "" if it needs none.
func neededCapability(task *v1.TaskDefinition) string {
	switch {
	case Sandboxed(task):
		return SandboxCapability
	case targetSession(task) != "":
		return v1.SessionCapability(targetSession(task))
	case task.GetType() == v1.TypeK8sJob:
		return v1.ClusterCapability(v1.ClusterOf(task.GetSpec()))
	}
	return ""
}
