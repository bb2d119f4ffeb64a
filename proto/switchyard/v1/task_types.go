package switchyardv1

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// Types of tasks: TaskDefinition.type.
const (
	TypeShell       = "shell"
	TypeContainer   = "container"
	TypeVPS         = "vps"
	TypeK8sJob      = "k8s_job"
	TypeSubagent    = "subagent"
	TypeClaudeRelay = "claude_relay"
	TypeRun         = "run"
	TypeApproval    = "approval"
)

// TaskType is a type of tasks. A type is a line of the table below, a word of the fields `type` in proto, and, if it runs on
// nodes, a package in activities/executor that the stack gives to its nodes. Tests hold these together.
type TaskType struct {
	// Name is the value of TaskDefinition.type.
	Name string
	// OnNode reports whether tasks run on a node. The others are a matter of the control process: they wait for another run, or
	// for a person.
	OnNode bool
	// Remote reports whether tasks run outside of the nodes, such as in a cluster, so that another node continues an attempt whose
	// node is lost. They take no slot and no resources of their node.
	Remote bool
	// Lasts reports whether tasks run until they are stopped, on the node where they began: an attempt that is away with its node
	// is lost only until the node is back.
	Lasts bool
	// MainField is the field of the spec that says what to run, by its JSON name.
	MainField string
	// Aliases are the words of other systems for it, in lower case and without separators.
	Aliases []string

	spec proto.Message
}

// NewSpec returns an empty message of what TaskDefinition.spec holds.
func (t TaskType) NewSpec() proto.Message { return t.spec.ProtoReflect().New().Interface() }

// taskTypes is the table of all types.
var taskTypes = []TaskType{
	{TypeShell, true, false, false, "command", []string{"bash", "sh", "zsh", "cmd", "command", "exec", "script", "process", "local", "python"}, &ShellSpec{}},
	{TypeContainer, true, false, false, "image", []string{"docker", "podman", "image", "oci"}, &ContainerSpec{}},
	{TypeVPS, true, false, true, "image", nil, &VpsSpec{}},
	{TypeK8sJob, true, true, false, "image", []string{"kubernetes", "k8s", "job", "pod"}, &K8SJobSpec{}},
	{TypeSubagent, true, false, false, "prompt", []string{"agent", "llm"}, &SubagentSpec{}},
	{TypeClaudeRelay, true, false, false, "prompt", nil, &ClaudeRelaySpec{}},
	{TypeRun, false, false, false, "workflow", []string{"workflow", "subworkflow", "childworkflow", "dag", "pipeline"}, &RunSpec{}},
	{TypeApproval, false, false, false, "message", []string{"manual", "gate", "approve", "wait", "confirm"}, &ApprovalSpec{}},
}

// FindTaskType returns the type of a name, or false if there is none.
func FindTaskType(name string) (TaskType, bool) {
	at := slices.IndexFunc(taskTypes, func(t TaskType) bool { return t.Name == name })
	if at < 0 {
		return TaskType{}, false
	}
	return taskTypes[at], true
}

// TaskTypeOfAlias returns the name of the type that other systems call by a word, or "" if there is none.
func TaskTypeOfAlias(word string) string {
	for _, t := range taskTypes {
		if slices.Contains(t.Aliases, word) {
			return t.Name
		}
	}
	return ""
}

// TaskTypes returns the names of all types.
func TaskTypes() []string {
	names := make([]string, 0, len(taskTypes))
	for _, t := range taskTypes {
		names = append(names, t.Name)
	}
	return names
}

// IsRemote reports whether tasks of a type run outside of the nodes.
func IsRemote(taskType string) bool {
	t, _ := FindTaskType(taskType)
	return t.Remote
}

// Lasts reports whether tasks of a type run until they are stopped.
func Lasts(taskType string) bool {
	t, _ := FindTaskType(taskType)
	return t.Lasts
}

// NeedsNode reports whether tasks of a type run on a node, as those of an unknown type do.
func NeedsNode(taskType string) bool {
	t, known := FindTaskType(taskType)
	return !known || t.OnNode
}
