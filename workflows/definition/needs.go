package definition

import (
	"maps"
	"path"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/interpreter"
	"switchyard/workflows/policy"
	"switchyard/workflows/secretref"
)

// TaskNeeds returns what a task requires its node to offer besides its container needs, or nil if nothing. Values from templates
// are not known yet and are left out. The definition must be in canonical form.
func TaskNeeds(task *v1.TaskDefinition) *historyv1.TaskNeeds {
	if !v1.NeedsNode(task.GetType()) {
		return nil
	}
	needs := &historyv1.TaskNeeds{Secrets: nodeSecrets(task), Stop: task.GetStop() != nil}
	needs.GpuParts = policy.GPUsOf(task.GetResources()).Part != nil
	spec := task.GetSpec().GetFields()
	switch {
	case task.GetType() == v1.TypeSubagent:
		addAgentNeeds(needs, task)
	case task.GetType() == v1.TypeShell:
		needs.Interpreters = interpreters(task)
	case task.GetType() == v1.TypeVPS && v1.BackendOf(task.GetSpec()) == v1.BackendQEMU:
		if image := knownText(spec["vmImage"]); path.IsAbs(image) {
			needs.VmImage = image
		}
	case task.GetType() == v1.TypeContainer || task.GetType() == v1.TypeVPS:
		needs.RegistryAuth = knownText(spec["registryAuth"])
		if network := knownText(spec["network"]); policy.IsNamedNetwork(network) {
			needs.Network = network
		}
	}
	if needs.String() == "" {
		return nil
	}
	return needs
}

// addAgentNeeds adds what an agent needs.
func addAgentNeeds(needs *historyv1.TaskNeeds, task *v1.TaskDefinition) {
	spec := task.GetSpec().GetFields()
	if isDrivenByProgram(task) {
		// With a PATH of its own, the task looks for the program elsewhere than the node.
		if _, ownPath := task.GetEnv()["PATH"]; !ownPath && len(spec["command"].GetListValue().GetValues()) == 0 {
			needs.AgentProgram = knownText(spec["agent"])
		}
		return
	}
	needs.AgentTools = agentTools(task)
	if len(spec["mcpServers"].GetStructValue().GetFields()) > 0 {
		needs.AgentTools = append(needs.AgentTools, v1.AgentToolMCP)
	}
	provider := v1.ProviderAnthropic
	if _, isSet := spec["provider"]; isSet {
		provider = knownText(spec["provider"])
	}
	key := v1.KeyVariable(provider)
	if spec["baseUrl"].GetStringValue() == "" && task.GetEnv()[key] == "" && task.GetSecretEnv()[key] == "" {
		needs.AgentKey = provider
	}
}

// interpreters returns the interpreters that run the command of a shell task. With a PATH of its own, the task looks for them
// elsewhere than the node.
func interpreters(task *v1.TaskDefinition) []string {
	spec := task.GetSpec().GetFields()
	if text := spec["command"].GetStringValue(); text != "" && !hasVariable(task, "PATH") {
		if program, err := interpreter.New(text, spec[shellField]); err == nil {
			return program.Wanted()
		}
	}
	return nil
}

// isDrivenByProgram reports whether a program drives the agent of a task.
func isDrivenByProgram(task *v1.TaskDefinition) bool {
	spec := task.GetSpec().GetFields()
	return spec["agent"].GetStringValue() != "" || len(spec["command"].GetListValue().GetValues()) > 0
}

// agentTools returns the tools of the agent of a task.
func agentTools(task *v1.TaskDefinition) []string {
	if task.GetType() != v1.TypeSubagent || isDrivenByProgram(task) {
		return nil
	}
	var tools []string
	for _, tool := range task.GetSpec().GetFields()["tools"].GetListValue().GetValues() {
		if name := knownText(tool); name != "" {
			tools = append(tools, name)
		}
	}
	return tools
}

// nodeSecrets returns the references of a task to secrets on its node, sorted.
func nodeSecrets(task *v1.TaskDefinition) []string {
	var refs []string
	//workflowcheck:ignore (the references are sorted)
	for _, text := range task.GetSecretEnv() {
		if ref, fault := secretref.Parse(text); fault == nil && ref.Kind != secretref.Store {
			refs = append(refs, ref.String())
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// knownText returns a text of a spec, or "" if it is not a text or comes from a template.
func knownText(v *structpb.Value) string {
	text := v.GetStringValue()
	if condition.HasTemplate(text) {
		return ""
	}
	return text
}

// ContainerNeeds returns what the container or the machine of a task requires its node to allow, or nil if nothing. Values from
// templates are not known yet and are left out. The definition must be in canonical form.
func ContainerNeeds(task *v1.TaskDefinition) *historyv1.ContainerNeeds {
	if task.GetType() != v1.TypeContainer && task.GetType() != v1.TypeVPS {
		return nil
	}
	fields := task.GetSpec().GetFields()
	spec := &v1.ContainerSpec{Privileged: fields["privileged"].GetBoolValue()}
	spec.Network = knownText(fields["network"])
	for _, m := range fields["mounts"].GetListValue().GetValues() {
		mount := m.GetStructValue().GetFields()
		if host := knownText(mount["hostPath"]); host != "" {
			spec.Mounts = append(spec.Mounts, &v1.Mount{HostPath: host, ReadOnly: mount["readOnly"].GetBoolValue()})
		}
	}
	for _, name := range fields["capAdd"].GetListValue().GetValues() {
		if name := knownText(name); name != "" {
			spec.CapAdd = append(spec.CapAdd, name)
		}
	}
	return policy.Needs(spec)
}

// Environments returns the sorted names of the environments that the tasks of a definition use, also in inline definitions. Names
// from templates are not known yet and are left out. The definition must be in canonical form.
func Environments(def *v1.Definition) []string {
	found := map[string]bool{}
	for _, task := range v1.AllTasks(def) {
		for _, name := range EnvironmentsOf(task.GetType(), task.GetSpec()) {
			found[name] = true
		}
		if inline := task.GetSpec().GetFields()["definition"].GetStructValue(); task.GetType() == v1.TypeRun && inline != nil {
			if inner, err := FromStruct(inline); err == nil {
				for _, name := range Environments(inner) {
					found[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// EnvironmentsOf returns the names of the environments in the spec of a task.
func EnvironmentsOf(taskType string, spec *structpb.Struct) []string {
	if taskType != v1.TypeContainer && taskType != v1.TypeVPS {
		return nil
	}
	var found []string
	for _, field := range []string{"environment", "vmImage"} {
		if name := spec.GetFields()[field].GetStringValue(); v1.IsEnvironmentName(name) {
			found = append(found, name)
		}
	}
	return found
}
