package definition

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// fieldScope describes the tasks on which a field has an effect. A task inherits no default without an effect on it, and a
// task's own field without an effect is refused.
type fieldScope struct {
	field      string // JSON names, separated by dots
	affects    func(task *v1.TaskDefinition) bool
	reason     string // why the field has no effect, to follow its name; %s is the type of the task
	hint       string
	typeHint   map[string]string // hints for certain types, in place of hint
	typeReason map[string]string // reasons for certain types, in place of reason
}

// These are the reasons of fieldScopes.
const (
	withoutNode = "is for tasks that run on a node; a task of type %s does not"
	asksPerson  = "is for tasks that run something; a task of type %s asks a person"
	unlimited   = "is for containers and sandboxes; a task of type %s has no process limit without one"
	ownFiles    = "is for tasks of type shell, container and subagent; a task of type %s cannot have artifacts"
	ownFolder   = "is for tasks of type shell and container; a task of type %s cannot share a folder"
	ownGang     = "is for tasks of type shell and container; a task of type %s cannot run as a gang"
	ofMachine   = "is about the machine of a node; a task of type %s runs in a cluster"
	ownStop     = "is for tasks of type shell, container and vps; a task of type %s is stopped in its own way"
	lasting     = "is for tasks that end by themselves; a task of type %s runs until it is stopped"
	unreadInput = "has no effect on a task of type %s whose spec does not read it with ${{ input.NAME }}"
)

// fieldScopes lists every field that has no effect on some tasks, by name.
var fieldScopes = []fieldScope{
	{field: "artifacts", affects: KeepsFiles, reason: ownFiles, typeHint: map[string]string{v1.TypeRun: "the tasks of the child run have their own"}},
	{field: "batch", affects: endsOnNode, reason: withoutNode, typeReason: ofLasting, typeHint: map[string]string{v1.TypeVPS: "each instance is its own machine"}},
	{field: "cache", affects: endsByItself, reason: asksPerson, hint: "each run asks again", typeReason: ofLasting, typeHint: map[string]string{v1.TypeVPS: "each run starts its own machine"}},
	{field: "constraints", affects: needsNode, reason: withoutNode},
	{field: "constraints.minDiskGb", affects: usesMachine, reason: ofMachine, hint: "resources.requests of the container in spec.template may have ephemeral-storage"},
	{field: "constraints.minMemoryMb", affects: usesMachine, reason: ofMachine, hint: "resources.memoryMb is the memory of the pod"},
	{field: "constraints.requiresGpu", affects: usesMachine, reason: ofMachine, hint: "resources.gpus is the number of GPUs of the pod"},
	{field: "env", affects: needsNode, reason: withoutNode, typeHint: childInput},
	{field: "gang", affects: sharesFolder, reason: ownGang, typeHint: map[string]string{v1.TypeRun: "the tasks of the child run have their own"}},
	{field: "heartbeatTimeout", affects: needsNode, reason: withoutNode},
	{field: "input", affects: readsInput, reason: unreadInput, typeHint: childInput},
	{field: "priority", affects: competes, reason: asksPerson, hint: "it orders the tasks that wait for a node or a lock"},
	{field: "resources", affects: needsNode, reason: withoutNode},
	{field: "resources.gpuMemoryMb", affects: usesMachine, reason: ofMachine, hint: "nodeSelector of spec chooses among the GPUs of the cluster"},
	{field: "resources.gpuModel", affects: usesMachine, reason: ofMachine, hint: "nodeSelector of spec chooses among the GPUs of the cluster"},
	{field: "resources.maxProcesses", affects: limitsProcesses, reason: unlimited, hint: "add sandbox: true to spec", typeHint: map[string]string{v1.TypeK8sJob: "the cluster limits the processes of its pods"}},
	{field: "resources.numaNode", affects: usesMachine, reason: ofMachine, hint: "nodeSelector of spec chooses among the machines of the cluster"},
	{field: "retry", affects: endsByItself, reason: asksPerson, hint: "deadline limits how long it waits for an answer", typeReason: ofLasting, typeHint: map[string]string{v1.TypeVPS: "a machine that has ended cannot be retried, because its disk is gone; `switchyard vps restart` restarts a running one"}},
	{field: "secretEnv", affects: needsNode, reason: withoutNode, typeHint: map[string]string{v1.TypeRun: "the tasks of the child run have their own"}},
	{field: "stop", affects: hasProgram, reason: ownStop, typeHint: map[string]string{
		v1.TypeK8sJob: "it gets SIGTERM, and SIGKILL 10 s later", v1.TypeSubagent: "a stopped agent keeps its journal", v1.TypeRun: "the tasks of the child run have their own",
	}},
	{field: "stop.signal", affects: receivesSignal, reason: "is for a program; a task of type %s without spec.init has none of its own", hint: "a virtual machine is asked to shut down, and the idle program of a container ends at once"},
	{field: "timeout", affects: needsNode, reason: withoutNode, hint: "deadline limits the time from when it could start", typeHint: map[string]string{v1.TypeApproval: "timeout in spec limits how long it waits for an answer"}},
	{field: "workspace", affects: sharesFolder, reason: ownFolder, typeHint: map[string]string{v1.TypeRun: "the tasks of the child run have their own"}},
}

// childInput is the hint that names the field that passes data to the run of a task of type run.
var childInput = map[string]string{v1.TypeRun: "spec.input is the input of the child run"}

// ofLasting is the reason for long-lived tasks.
var ofLasting = map[string]string{v1.TypeVPS: lasting}

func needsNode(task *v1.TaskDefinition) bool { return v1.NeedsNode(task.GetType()) }

// KeepsFiles reports whether a task can start in a folder for files: those of its artifacts, and of the source of its run.
func KeepsFiles(task *v1.TaskDefinition) bool {
	return sharesFolder(task) || task.GetType() == v1.TypeSubagent
}

// sharesFolder reports whether a task can share a workspace with others.
func sharesFolder(task *v1.TaskDefinition) bool {
	return task.GetType() == v1.TypeShell || task.GetType() == v1.TypeContainer
}

func runsSomething(task *v1.TaskDefinition) bool { return task.GetType() != v1.TypeApproval }

// endsByItself reports whether a task runs something that ends without being stopped.
func endsByItself(task *v1.TaskDefinition) bool {
	return runsSomething(task) && !v1.Lasts(task.GetType())
}

// hasProgram reports whether a task runs a program of its own, or a machine, which is stopped by a signal.
func hasProgram(task *v1.TaskDefinition) bool {
	return task.GetType() == v1.TypeShell || task.GetType() == v1.TypeContainer || task.GetType() == v1.TypeVPS
}

// receivesSignal reports whether the program of a task can tell one stop signal from another.
func receivesSignal(task *v1.TaskDefinition) bool {
	return task.GetType() != v1.TypeVPS || len(task.GetSpec().GetFields()["init"].GetListValue().GetValues()) > 0
}

func endsOnNode(task *v1.TaskDefinition) bool { return needsNode(task) && endsByItself(task) }

// limitsProcesses reports whether the number of a task's processes can be limited.
func limitsProcesses(task *v1.TaskDefinition) bool {
	return task.GetType() != v1.TypeShell && usesMachine(task) || Sandboxed(task)
}

// usesMachine reports whether a task, if it has a node, uses the resources of that node.
func usesMachine(task *v1.TaskDefinition) bool { return !v1.IsRemote(task.GetType()) }

// competes reports whether a task may wait for something that other tasks need, too.
func competes(task *v1.TaskDefinition) bool {
	return runsSomething(task) || task.GetMutex() != "" || task.GetSemaphore() != nil
}

// inputName matches the variable `input` in an expression, but not a field of that name.
var inputName = lazyPattern(`(^|[^.\w])input\b`)

// readsInput reports whether anything reads the input of a task. A program finds it in a file.
func readsInput(task *v1.TaskDefinition) bool {
	if needsNode(task) || inputName().MatchString(task.GetCache().GetKey()) {
		return true
	}
	isRead := func(text string) bool { return condition.HasTemplate(text) && inputName().MatchString(text) }
	for _, text := range texts(structpb.NewStructValue(TemplateSpec(task)), nil) {
		if isRead(text) {
			return true
		}
	}
	return isRead(LockName(task))
}

// parent returns the message that holds the last field of the scope's path, in a task or in the defaults, and that field. Both
// are nil if there is no such field.
func (s fieldScope) parent(m protoreflect.Message) (parent protoreflect.Message, field protoreflect.FieldDescriptor) {
	for rest := s.field; ; {
		name, after, nested := strings.Cut(rest, ".")
		field = m.Descriptor().Fields().ByJSONName(name)
		switch {
		case field == nil:
			return nil, nil
		case !nested:
			return m, field
		case !m.Has(field):
			return nil, nil
		}
		m, rest = m.Get(field).Message(), after
	}
}

// isSet reports whether a task, or the defaults of tasks, has the field.
func (s fieldScope) isSet(of proto.Message) bool {
	m, field := s.parent(of.ProtoReflect())
	return m != nil && m.Has(field)
}
