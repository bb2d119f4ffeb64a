package names

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Workflow types, as registered with Temporal.
const (
	RunWorkflow     = "Run"
	NodeWorkflow    = "Node"
	LeaderWorkflow  = "Leader"
	ExplainWorkflow = "Explain"
	// FanOutWorkflow runs a range of a task's instances on behalf of a run.
	FanOutWorkflow = "FanOut"
	// LockWorkflow hands out the places of a mutex or a semaphore, or the run slots of a workflow.
	LockWorkflow = "Lock"
	// EnvironmentWorkflow creates a named environment.
	EnvironmentWorkflow = "Environment"
	// NotifyWorkflow tells people about one event of a run.
	NotifyWorkflow = "Notify"
	// ScheduleChange is the type of the executions that are open while a gateway changes a schedule, and their task queue. No
	// worker polls it.
	ScheduleChange = "ScheduleChange"
)

// Activity types, as registered with Temporal.
const (
	ExecuteActivity        = "Execute"
	PlaceActivity          = "Place"
	AwaitPlacementActivity = "AwaitPlacement"
	EvaluateActivity       = "Evaluate"
	SaveStatusActivity     = "SaveStatus"
	LoadStateActivity      = "LoadState"
	SaveStateActivity      = "SaveState"
	SaveEventsActivity     = "SaveEvents"
	ReopenActivity         = "Reopen"
	HeartbeatActivity      = "Heartbeat"
	DrainActivity          = "Drain"
	TermsActivity          = "Terms"
	UndrainActivity        = "Undrain"
	LeadActivity           = "Lead"
	ExplainActivity        = "Explain"
	CollectActivity        = "Collect"
	SaveCachedActivity     = "SaveCached"
	AskLocksActivity       = "AskLocks"
	HoldersActivity        = "Holders"
	PrepareActivity        = "Prepare"
	SaveInputActivity      = "SaveInput"
	LoadInputActivity      = "LoadInput"
	LoadWorkflowActivity   = "LoadWorkflow"
	ChildRunEndsActivity   = "ChildRunEnds"
	AwaitRunsActivity      = "AwaitRuns"
	SaveSharedActivity     = "SaveShared"
	SaveAncestorsActivity  = "SaveAncestors"
	LoadProgressActivity   = "LoadProgress"
	SilentNodesActivity    = "SilentNodes"
	ProbeStoreActivity     = "ProbeStore"
	VerifyDecisionActivity = "VerifyDecision"
	AwaitAnswerActivity    = "AwaitAnswer"
	DetachActivity         = "Detach"
	SteerActivity          = "Steer"
	// ReserveActivity reserves the place of a member of a gang on its node. It takes an ExecuteRequest and returns a ReserveResponse.
	ReserveActivity = "Reserve"

	// FleetNotifyActivity takes nothing and returns a FleetNotify.
	FleetNotifyActivity = "FleetNotify"
	// TellActivity puts a NotifyInput into the outbox, from which the leader starts the workflow Notify. It returns nothing.
	TellActivity = "Tell"
	// PlanNotificationActivity takes a NotifyInput and returns a NotificationPlan.
	PlanNotificationActivity = "PlanNotification"
	// SendNotificationActivity takes a SendNotificationRequest and returns nothing.
	SendNotificationActivity = "SendNotification"

	// CaptureActivity stores the archive of an environment, on a node's lane for this purpose. It takes a CaptureRequest and
	// returns a CaptureResponse.
	CaptureActivity = "Capture"
	// KeepActivity gives its name to an environment whose archive is stored, replacing an older version. It takes an
	// Environment and returns it as ready. It is idempotent.
	KeepActivity = "Keep"
	// DiscardActivity removes the stored parts of the archive of an Environment that did not become ready, and returns nothing.
	// It leaves an archive that has its name.
	DiscardActivity = "Discard"
)

// EventID returns the ID of an event of a run. part is the first instance of the partition that reported the event, or "" for
// the run itself.
func EventID(generation int32, part string, number int64) string {
	if part != "" {
		part += "-"
	}
	return strconv.Itoa(int(generation)) + "-" + part + strconv.FormatInt(number, 10)
}

// ParseEventID parses an event ID. It is the inverse of EventID.
func ParseEventID(id string) (generation int32, part string, number int64, ok bool) {
	first, rest, found := strings.Cut(id, "-")
	if at := strings.LastIndexByte(rest, '-'); at >= 0 {
		part, rest = rest[:at], rest[at+1:]
	}
	g, err := strconv.ParseInt(first, 10, 32)
	n, numberErr := strconv.ParseInt(rest, 10, 64)
	ok = found && err == nil && numberErr == nil && g >= 0 && n >= 0 && EventID(int32(g), part, n) == id
	return int32(g), part, n, ok
}

// ActorHeader is the request header in which a client names the sender of the request to the gateway.
const ActorHeader = "Switchyard-Actor"

// Signals, queries and updates of the workflow Run.
const (
	CancelSignal   = "cancel"
	StatusQuery    = "status"
	EventsQuery    = "events"
	InstancesQuery = "instances"

	RetryUpdate       = "retry"
	PauseUpdate       = "pause"
	ResumeUpdate      = "resume"
	HoldUpdate        = "hold"
	ReleaseUpdate     = "release"
	CancelTaskUpdate  = "cancel_task"
	PauseTaskUpdate   = "pause_task"
	ResumeTaskUpdate  = "resume_task"
	KillTaskUpdate    = "kill_task"
	StopTaskUpdate    = "stop_task"
	RestartTaskUpdate = "restart_task"
	ApproveUpdate     = "approve"
	RejectUpdate      = "reject"
	ApproveRunUpdate  = "approve_run"
	RejectRunUpdate   = "reject_run"

	// GrantedSignal is the signal with which a Lock answers a run. PartitionReportSignal is the report of a FanOut child to its run.
	GrantedSignal         = "granted"
	PartitionReportSignal = "partition_report"
	// OrderSignal is the order of a run to a FanOut child: to pause, to start nothing new, or to end.
	OrderSignal = "order"
	// ContextSignal is the answer of a run to the context updates of a FanOut child.
	ContextSignal = "context"
)

// AskSignal is the signal for requesting and releasing places at the workflow Lock. It is one signal, so that both stay in order.
const AskSignal = "ask"

// These are the types of the errors with which Run refuses an update.
const (
	// UnknownTaskError means that the run has no such task.
	UnknownTaskError = "UnknownTask"
	// NotAllowedError means that the person may not make the decision.
	NotAllowedError = "NotAllowed"
	// InvalidInputError means that the input of an approval is not what the approval declares.
	InvalidInputError = "InvalidInput"
	// TaskStateError means that the state of the task or the run does not allow the update.
	TaskStateError = "TaskState"
	// RunEndedError means that the run has ended and its workflow is about to close.
	RunEndedError = "RunEnded"
	// RunContinuingError means that the run is about to continue as new; the next execution accepts the update.
	RunContinuingError = "RunContinuing"
)

// Updates of the workflow Node.
const (
	RegisterUpdate = "register"
	LeaveUpdate    = "leave"
	DrainUpdate    = "drain"
	TermsUpdate    = "terms"
	UndrainUpdate  = "undrain"
	RestartUpdate  = "restart"
	RemoveUpdate   = "remove"
)

// AttemptFailedError is the type of the error that Execute returns for a failed attempt. Its details hold the ExecuteResponse.
const AttemptFailedError = "AttemptFailed"

// These are the types of the errors with which Node refuses an update.
const (
	// TakenError means that a live worker has the name.
	TakenError = "NodeTaken"
	// StateError means that the state of the node does not allow the update.
	StateError = "NodeState"
)

// OtherIncarnationError is the type of the error with which a worker refuses a Heartbeat for another start of its node. Such a
// worker has not learned yet that it has lost the name.
const OtherIncarnationError = "OtherIncarnation"

// NodeLeft is the reason why a node is offline after its worker has stopped in order.
const NodeLeft = "left"

// NodeMemo is the key in the memo of a workflow Node that holds its NodeRecord.
const NodeMemo = "node"

// EnvironmentMemo is the key in the memo of a workflow Environment that holds the Environment being created.
const EnvironmentMemo = "environment"

// These are the keys in the memo of a run's workflow.
const (
	// ProblemMemo holds why the run cannot continue for now; absent or empty if it can.
	ProblemMemo = "problem"
	// RequestMemo holds the hash of the request that started the run under an idempotency key; absent if it had none.
	RequestMemo = "request"
	// KeyMemo holds the idempotency key of that request, as its sender gave it.
	KeyMemo = "key"
)

// These are the search attributes of a run, which package visibility describes.
const (
	WorkflowAttribute    = "SwitchyardWorkflow"
	StateAttribute       = "SwitchyardState"
	TriggerAttribute     = "SwitchyardTrigger"
	ParentAttribute      = "SwitchyardParent"
	OwnerAttribute       = "SwitchyardOwner"
	BatchAttribute       = "SwitchyardBatch"
	LabelsAttribute      = "SwitchyardLabels"
	NodesAttribute       = "SwitchyardNodes"
	TypesAttribute       = "SwitchyardTypes"
	TextAttribute        = "SwitchyardText"
	SubmittedAttribute   = "SwitchyardSubmitted"
	LateSinceAttribute   = "SwitchyardLateSince"
	DeadLettersAttribute = "SwitchyardDeadLetters"
)

// ReportedProblemsAttribute is Temporal's own search attribute (a KeywordList) of a workflow whose workflow task fails
// repeatedly; absent otherwise.
const ReportedProblemsAttribute = "TemporalReportedProblems"

// ControlQueue is the task queue of Run, its children and placement. Only the leader polls it.
const ControlQueue = "control"

// ElectionQueue is the task queue of Leader and Node, and of the activity Lead; every control process polls it.
const ElectionQueue = "election"

// LeaderWorkflowID is the ID of the single workflow Leader.
const LeaderWorkflowID = "switchyard-leader"

// A Lane is one of the task queues of a node.
type Lane string

// These are the lanes of a node.
const (
	CPULane     Lane = "cpu"
	GPULane     Lane = "gpu"
	RemoteLane  Lane = "remote" // for attempts that run outside the node
	ControlLane Lane = "control"
	// EnvironmentLane is the lane for captures of environments, which take minutes.
	EnvironmentLane Lane = "environment"
)

// AttemptLanes returns the lanes on which a node receives attempts.
func AttemptLanes() []Lane { return []Lane{CPULane, GPULane, RemoteLane} }

// MaxRemoteAttempts is how many attempts outside the node a node runs at once.
const MaxRemoteAttempts = 1000

const nodePrefix = "node:"

// NodeQueue returns the task queue of a node's lane, such as "node:a:cpu".
func NodeQueue(node string, lane Lane) string {
	return nodePrefix + node + ":" + string(lane)
}

// ParseNodeQueue parses the task queue of a lane. It is the inverse of NodeQueue.
func ParseNodeQueue(queue string) (node string, lane Lane, ok bool) {
	rest, ok := strings.CutPrefix(queue, nodePrefix)
	i := strings.LastIndexByte(rest, ':')
	if !ok || i <= 0 {
		return "", "", false
	}
	lane = Lane(rest[i+1:])
	return rest[:i], lane, lane == ControlLane || lane == EnvironmentLane || slices.Contains(AttemptLanes(), lane)
}

const environmentPrefix = "environment:"

// EnvironmentWorkflowID returns the ID of the workflow that creates an environment.
func EnvironmentWorkflowID(name string) string { return environmentPrefix + name }

// ParseEnvironmentWorkflowID returns the name of an environment. It is the inverse of EnvironmentWorkflowID.
func ParseEnvironmentWorkflowID(id string) (name string, ok bool) {
	name, ok = strings.CutPrefix(id, environmentPrefix)
	return name, ok && name != ""
}

// MaxNode is the maximum length of a node name.
const MaxNode = 63

// IsNode reports whether a text is a valid node name: at most MaxNode of a-z, 0-9, '.' and '-', the first and the last a letter
// or digit.
func IsNode(name string) bool {
	if name == "" || len(name) > MaxNode || strings.Trim(name, ".-") != name {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-'
	})
}

// NodeWorkflowID returns the ID of the workflow that registers a node.
func NodeWorkflowID(node string) string { return nodePrefix + node }

// ParseNodeWorkflowID returns the name of a node. It is the inverse of NodeWorkflowID.
func ParseNodeWorkflowID(id string) (node string, ok bool) {
	node, ok = strings.CutPrefix(id, nodePrefix)
	return node, ok && node != ""
}

// AttemptID returns the ID of the activity that runs a dispatch of a task, such as "build#3".
func AttemptID(task string, claim int32) string {
	return task + "#" + strconv.Itoa(int(claim))
}

// ParseAttemptID parses an attempt ID. It is the inverse of AttemptID.
func ParseAttemptID(id string) (task string, claim int32, ok bool) {
	i := strings.LastIndexByte(id, '#')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(id[i+1:], 10, 32)
	if err != nil || n < 0 {
		return "", 0, false
	}
	return id[:i], int32(n), true
}

// InstanceName returns the name of an instance of a fanned-out task, such as "each[3]".
func InstanceName(task string, index int) string {
	return task + "[" + strconv.Itoa(index) + "]"
}

// ParseInstanceName parses the name of an instance. It is the inverse of InstanceName.
func ParseInstanceName(name string) (task string, index int, ok bool) {
	rest, found := strings.CutSuffix(name, "]")
	task, number, cut := strings.Cut(rest, "[")
	index, err := strconv.Atoi(number)
	if !found || !cut || err != nil || index < 0 || task == "" || InstanceName(task, index) != name {
		return "", 0, false
	}
	return task, index, true
}

// FanOut identifies the child of a run that handles the instances of a task starting at a number. Chain is the chain of the
// run, so that a run that was reset starts children of its own beside those that are still ending.
type FanOut struct {
	Run, Chain string
	Generation int32
	Task       string
	From       int
}

// ID returns the workflow ID of the child, which is also its key prefix in the store.
func (f FanOut) ID() string {
	return Home(f.Run+"/"+strconv.Itoa(int(f.Generation))+"/"+InstanceName(f.Task, f.From), f.Chain)
}

// ParseFanOutID parses the workflow ID of a FanOut child. It is the inverse of FanOut.ID.
func ParseFanOutID(id string) (f FanOut, ok bool) {
	var number, instance string
	f.Run, id, _ = strings.Cut(id, "/")
	number, id, _ = strings.Cut(id, "/")
	instance, f.Chain, _ = strings.Cut(id, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	f.Generation = int32(n)
	f.Task, f.From, ok = ParseInstanceName(instance)
	return f, ok && err == nil && n >= 0 && f.Run != ""
}

// NotifyWorkflowID returns the ID of the workflow that tells people about an event of a run, or of the task of the event if it has
// one. Temporal accepts the ID once, so that the event is told once.
func NotifyWorkflowID(run string, generation int32, event, task string) string {
	id := "notify:" + run + ":" + strconv.Itoa(int(generation)) + ":" + event
	if task != "" {
		id += ":" + task
	}
	return id
}

// NotifyScheduleID returns the ID of the workflow that tells people that the schedule of a stored workflow is late since a time.
func NotifyScheduleID(workflow string, since time.Time) string {
	return "notify-schedule:" + workflow + ":" + since.UTC().Format(time.RFC3339)
}

// NotificationKey returns the idempotency key of the message about an event to a target: letters, digits and '_'.
func NotificationKey(home string, generation int32, event, task, target string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{home, strconv.Itoa(int(generation)), event, task, target}, "\x00")))
	return "msg_" + hex.EncodeToString(sum[:16])
}

const storedPrefix = "workflow:"

// StoredWorkflowID returns the ID of the schedule that holds a stored definition.
func StoredWorkflowID(name string) string { return storedPrefix + name }

// ParseStoredWorkflowID returns the name of a stored workflow. It is the inverse of StoredWorkflowID.
func ParseStoredWorkflowID(id string) (name string, ok bool) {
	name, ok = strings.CutPrefix(id, storedPrefix)
	return name, ok && name != ""
}

// ScheduleChangeID returns the ID of the execution that is open while a gateway changes the schedule with an ID.
func ScheduleChangeID(schedule string) string { return "change:" + schedule }

// LockWorkflowID returns the ID of the workflow that hands out the places of a lock.
func LockWorkflowID(name string) string { return "lock:" + name }

// TaskLock returns the name of the lock of a mutex or semaphore.
func TaskLock(name string) string { return "task:" + name }

// RunLock returns the name of the lock for the runs of a workflow.
func RunLock(workflow string) string { return "run:" + workflow }

// runIDAlphabet has no vowels, so that no suffix is a word, and no l, which looks like 1.
const runIDAlphabet = "0123456789bcdfghjkmnpqrstvwxyz"

// runIDSuffixLength gives 30^8 suffixes for each workflow, which is 656 thousand million.
const runIDSuffixLength = 8

// NewRunID returns a new run ID, "<workflow>-<8 random characters>".
func NewRunID(workflow string) string {
	suffix := make([]byte, runIDSuffixLength)
	for i := range suffix {
		suffix[i] = runIDAlphabet[rand.IntN(len(runIDAlphabet))]
	}
	return workflow + "-" + string(suffix)
}

// KeyedRunID returns the ID of a workflow's run that is submitted under an idempotency key.
func KeyedRunID(workflow, key string) string {
	sum := sha256.Sum256([]byte(workflow + "\x00" + key))
	n := binary.BigEndian.Uint64(sum[:])
	suffix := make([]byte, runIDSuffixLength)
	for i := range suffix {
		suffix[i] = runIDAlphabet[n%uint64(len(runIDAlphabet))]
		n /= uint64(len(runIDAlphabet))
	}
	return workflow + "-" + string(suffix)
}

// NewExplainID returns a new ID for a workflow that explains a task of a run.
func NewExplainID(run string) string { return "explain:" + NewRunID(run) }

// Home returns the key prefix under which a run stores its data: its ID and its chain of executions.
func Home(run, chain string) string {
	if chain == "" {
		return run
	}
	return run + "/" + chain
}
