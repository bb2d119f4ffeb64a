package stack

import (
	"maps"
	"os/exec"
	"slices"

	"switchyard/activities/executor/container"
	"switchyard/activities/executor/subagent"
	v1 "switchyard/proto/switchyard/v1"
)

// newSupport returns a function that reports what a node of this process lets tasks use.
func newSupport(n NodeConfig, containers *container.Executor) func() *v1.TaskSupport {
	patterns, all := n.Secrets.Patterns()
	return func() *v1.TaskSupport {
		_, err := exec.LookPath("numactl")
		return &v1.TaskSupport{
			VmImageDirs: n.VMs.Images, RegistryAuths: slices.Sorted(maps.Keys(n.Containers.RegistryAuth)), Networks: containers.Networks(),
			AgentTools: n.Agents.Tools, AgentKeys: slices.Sorted(maps.Keys(n.Agents.KeyFiles)), AgentPrograms: subagent.InstalledPrograms(),
			Secrets: patterns, AllSecrets: all, Numactl: err == nil,
		}
	}
}
