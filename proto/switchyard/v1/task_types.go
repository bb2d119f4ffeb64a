package switchyardv1

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// Types of tasks, the values of TaskDefinition.type.
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

// TaskType describes a type of tasks. Each type has an entry in the table below, a value of the fields `type` in proto, and, if
// it runs on nodes, a package in activities/executor that the stack gives to its nodes. Tests check that these agree.
type TaskType struct {
	// Name is the value of TaskDefinition.type.
	Name string
	// OnNode is set if tasks of the type run on a node. The control process handles the other types: their tasks wait for another
	// run or for a person.
	OnNode bool
	// Remote is set if tasks run outside of the nodes, such as in a cluster, so that another node can continue an attempt whose
	// node is lost. Such tasks take no slot and no resources of their node.
	Remote bool
	// Lasts is set if tasks run on the node where they started until they are stopped. An attempt that is away with its node is
	// lost only until the node is back.
	Lasts bool
	// MainField is the JSON name of the spec field that determines what to run.
	MainField string
	// Aliases are names for the type in other systems, in lower case and without separators.
	Aliases []string

	spec proto.Message
}

// NewSpec returns an empty message of the type that TaskDefinition.spec holds.
func (t TaskType) NewSpec() proto.Message { return t.spec.ProtoReflect().New().Interface() }

// taskTypes is the table of all types.
var taskTypes = []TaskType{
	{TypeShell, true, false, false, "command", []string{"cmd", "command", "exec", "script", "process", "local"}, &ShellSpec{}},
	{TypeContainer, true, false, false, "image", []string{"docker", "podman", "image", "oci"}, &ContainerSpec{}},
	{TypeVPS, true, false, true, "image", nil, &VpsSpec{}},
	{TypeK8sJob, true, true, false, "image", []string{"kubernetes", "k8s", "job", "pod"}, &K8SJobSpec{}},
	{TypeSubagent, true, false, false, "prompt", []string{"agent", "llm"}, &SubagentSpec{}},
	{TypeClaudeRelay, true, false, false, "prompt", nil, &ClaudeRelaySpec{}},
	{TypeRun, false, false, false, "workflow", []string{"workflow", "subworkflow", "childworkflow", "dag", "pipeline"}, &RunSpec{}},
	{TypeApproval, false, false, false, "message", []string{"manual", "gate", "approve", "wait", "confirm"}, &ApprovalSpec{}},
}

// FindTaskType returns the task type with a name, or false if there is none.
func FindTaskType(name string) (TaskType, bool) {
	at := slices.IndexFunc(taskTypes, func(t TaskType) bool { return t.Name == name })
	if at < 0 {
		return TaskType{}, false
	}
	return taskTypes[at], true
}

// TaskTypeOfAlias returns the name of the type with an alias, or "" if there is none.
func TaskTypeOfAlias(word string) string {
	for _, t := range taskTypes {
		if slices.Contains(t.Aliases, word) {
			return t.Name
		}
	}
	return ""
}

// TaskTypes returns the names of all task types.
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

// NeedsNode reports whether tasks of a type run on a node. Tasks of an unknown type count as doing so.
func NeedsNode(taskType string) bool {
	t, known := FindTaskType(taskType)
	return !known || t.OnNode
}
