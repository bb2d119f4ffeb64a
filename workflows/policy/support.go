package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Unsupported returns what a task needs and a node does not offer, each with its remedy. An item completes "does not offer".
// command is the command that started the node, or "" for "worker". A node that reports no support offers everything here:
// it refuses a task itself.
func Unsupported(support *v1.TaskSupport, needs *historyv1.TaskNeeds, command string) []string {
	if support == nil || needs == nil {
		return nil
	}
	var lacking []string
	add := func(what, flag string) {
		lacking = append(lacking, what+" (switchyard "+cmp.Or(command, "worker")+" "+flag+")")
	}
	inDir := func(dir string) bool { return Below(dir, path.Clean(needs.GetVmImage())) }
	if image := needs.GetVmImage(); image != "" && !slices.ContainsFunc(support.GetVmImageDirs(), inDir) {
		add("image "+image, "--vm-images "+path.Dir(image))
	}
	if name := needs.GetRegistryAuth(); name != "" && !slices.Contains(support.GetRegistryAuths(), name) {
		add("registry credentials "+name, "--registry-auth "+name+"=FILE")
	}
	if name := needs.GetNetwork(); name != "" && !slices.Contains(support.GetNetworks(), name) {
		lacking = append(lacking, "network "+name+" (docker network create "+name+")")
	}
	for _, tool := range needs.GetAgentTools() {
		if !slices.Contains(support.GetAgentTools(), tool) {
			add("agent tool "+tool, "--agent-tools "+strings.Join(append(slices.Clone(support.GetAgentTools()), tool), ","))
		}
	}
	if provider := needs.GetAgentKey(); provider != "" && !slices.Contains(support.GetAgentKeys(), provider) {
		add("a key for "+provider, "--agent-key-file "+provider+"=FILE")
	}
	if program := needs.GetAgentProgram(); program != "" && !slices.Contains(support.GetAgentPrograms(), program) {
		lacking = append(lacking, "agent "+program+" (install it on the node)")
	}
	for _, name := range needs.GetInterpreters() {
		if !slices.Contains(support.GetInterpreters(), name) {
			lacking = append(lacking, "interpreter "+name+" (install it on the node, and restart the worker)")
		}
	}
	if needs.GetStop() && !support.GetStop() {
		lacking = append(lacking, "stop of a task (upgrade its worker)")
	}
	if needs.GetGpuParts() && !support.GetGpuParts() {
		lacking = append(lacking, "parts of GPUs (upgrade its worker)")
	}
	for _, ref := range needs.GetSecrets() {
		isCovered := func(pattern string) bool { matched, err := path.Match(pattern, ref); return err == nil && matched }
		if !support.GetAllSecrets() && !slices.ContainsFunc(support.GetSecrets(), isCovered) {
			add("secret "+ref, "--allow-secret "+ref)
		}
	}
	return lacking
}
