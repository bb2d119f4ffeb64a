package definition

import (
	"slices"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// Constraints returns the constraints of a task, including what its spec requires of a node, and further capabilities. The caller must
// not modify them.
func Constraints(task *v1.TaskDefinition, also ...string) *v1.Constraints {
	said := task.GetConstraints()
	if needsEngine(task) && !slices.Contains(said.GetRequiresExecutors(), v1.TypeContainer) {
		said = cloneOrNew(said)
		said.RequiresExecutors = append(said.RequiresExecutors, v1.TypeContainer)
	}
	needed := slices.DeleteFunc(append(neededCapabilities(task), also...), func(key string) bool {
		_, isSaid := said.GetRequiresCapabilities()[key]
		return isSaid
	})
	if len(needed) == 0 {
		return said
	}
	c := cloneOrNew(said)
	if c.RequiresCapabilities == nil {
		c.RequiresCapabilities = map[string]string{}
	}
	for _, key := range needed {
		c.RequiresCapabilities[key] = "true"
	}
	return c
}

// needsEngine reports whether the node of a task of another type than container needs a running container engine: for a machine
// made of a container, or for the commands of an agent.
func needsEngine(task *v1.TaskDefinition) bool {
	return task.GetType() == v1.TypeVPS && v1.BackendOf(task.GetSpec()) == v1.BackendDocker ||
		runsCommands(task) && task.GetSpec().GetFields()["image"].GetStringValue() != ""
}

// runsCommands reports whether a task is an agent with the tool "shell".
func runsCommands(task *v1.TaskDefinition) bool {
	return slices.Contains(agentTools(task), v1.AgentToolShell)
}

func cloneOrNew(c *v1.Constraints) *v1.Constraints {
	if c == nil {
		return &v1.Constraints{}
	}
	return proto.CloneOf(c)
}

// neededCapabilities returns the node capabilities that the spec and the env of a task require.
func neededCapabilities(task *v1.TaskDefinition) (needed []string) {
	switch {
	case Sandboxed(task), runsCommands(task) && task.GetSpec().GetFields()["image"].GetStringValue() == "":
		needed = append(needed, SandboxCapability)
	case targetSession(task) != "":
		needed = append(needed, v1.SessionCapability(targetSession(task)))
	case task.GetType() == v1.TypeK8sJob:
		needed = append(needed, v1.ClusterCapability(v1.ClusterOf(task.GetSpec())))
	case task.GetType() == v1.TypeVPS && v1.BackendOf(task.GetSpec()) == v1.BackendQEMU:
		needed = append(needed, v1.QEMUCapability)
	}
	if v1.NeedsSharedDir(task.GetType(), task.GetSpec(), task.GetEnv()) {
		needed = append(needed, v1.SharedDirCapability)
	}
	if task.GetArtifacts() != nil {
		needed = append(needed, v1.ArtifactsCapability)
	}
	if task.GetWorkspace() != "" {
		needed = append(needed, v1.WorkspacesCapability)
	}
	if task.GetGang() != nil {
		needed = append(needed, v1.GangCapability)
	}
	return needed
}

// SandboxCapability is a capability that is "true" on nodes that can run shell tasks in a sandbox.
const SandboxCapability = "sandbox"

// Sandboxed reports whether a task runs in a sandbox.
func Sandboxed(task *v1.TaskDefinition) bool {
	return task.GetType() == v1.TypeShell && task.GetSpec().GetFields()["sandbox"].GetBoolValue()
}
