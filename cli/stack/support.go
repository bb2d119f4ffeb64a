package stack

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"switchyard/activities/executor/container"
	"switchyard/activities/executor/subagent"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/interpreter"
)

// newSupport returns a function that reports what a node of this process lets tasks use.
func newSupport(n NodeConfig, containers *container.Executor) func() *v1.TaskSupport {
	patterns, all := n.Secrets.Patterns()
	interpreters := findInterpreters(os.Getenv("PATH"))
	return func() *v1.TaskSupport {
		_, err := exec.LookPath("numactl")
		return &v1.TaskSupport{
			VmImageDirs: n.VMs.Images, RegistryAuths: slices.Sorted(maps.Keys(n.Containers.RegistryAuth)), Networks: containers.Networks(),
			AgentTools: n.Agents.Tools, AgentKeys: slices.Sorted(maps.Keys(n.Agents.KeyFiles)), AgentPrograms: subagent.InstalledPrograms(),
			Secrets: patterns, AllSecrets: all, Numactl: err == nil, Interpreters: interpreters, Stop: true, GpuParts: true,
		}
	}
}

// findInterpreters returns the interpreters that nodes look for and that a search path holds, sorted. Python and others are often
// there under several names with a version.
func findInterpreters(searchPath string) []string {
	var found []string
	for _, dir := range filepath.SplitList(searchPath) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // as for a shell
		}
		for _, entry := range entries {
			if !interpreter.IsKnown(entry.Name()) {
				continue
			}
			if info, err := os.Stat(filepath.Join(dir, entry.Name())); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
				found = append(found, entry.Name())
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
