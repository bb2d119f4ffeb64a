package definition

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// Constraints returns the constraints of a task, including what its spec requires of a node. The caller must not modify them.
func Constraints(task *v1.TaskDefinition) *v1.Constraints {
	said := task.GetConstraints()
	if isContainerMachine(task) && !slices.Contains(said.GetRequiresExecutors(), v1.TypeContainer) {
		c := cloneOrNew(said)
		c.RequiresExecutors = append(slices.Clone(c.GetRequiresExecutors()), v1.TypeContainer)
		return c
	}
	needed := neededCapability(task)
	if needed == "" {
		return said
	}
	if _, ok := said.GetRequiresCapabilities()[needed]; ok {
		return said
	}
	c := cloneOrNew(said)
	c.RequiresCapabilities = maps.Clone(c.RequiresCapabilities)
	if c.RequiresCapabilities == nil {
		c.RequiresCapabilities = map[string]string{}
	}
	c.RequiresCapabilities[needed] = "true"
	return c
}

// isContainerMachine reports whether a task is a machine made of a container, so that its node needs a running container
// engine.
func isContainerMachine(task *v1.TaskDefinition) bool {
	return task.GetType() == v1.TypeVPS && v1.BackendOf(task.GetSpec()) == v1.BackendDocker
}

func cloneOrNew(c *v1.Constraints) *v1.Constraints {
	if c == nil {
		return &v1.Constraints{}
	}
	return proto.CloneOf(c)
}

// neededCapability returns the node capability that the spec of a task requires, or "" if there is none.
func neededCapability(task *v1.TaskDefinition) string {
	switch {
	case Sandboxed(task):
		return SandboxCapability
	case targetSession(task) != "":
		return v1.SessionCapability(targetSession(task))
	case task.GetType() == v1.TypeK8sJob:
		return v1.ClusterCapability(v1.ClusterOf(task.GetSpec()))
	case task.GetType() == v1.TypeVPS && v1.BackendOf(task.GetSpec()) == v1.BackendQEMU:
		return v1.QEMUCapability
	}
	return ""
}
