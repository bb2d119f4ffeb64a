package tunnel

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// maxListed bounds how many tasks an error lists.
const maxListed = 10

// attempt is an attempt that a node is running.
type attempt struct {
	name  string // name of the task or instance; for a batch, of its first instance
	claim int32
	node  string
}

// attemptsAmong returns the running attempts among the pending activities of a workflow.
func attemptsAmong(pending []*workflowpb.PendingActivityInfo) (found []attempt) {
	for _, p := range pending {
		// A cancelled activity keeps running until its processes have exited.
		started := p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED || p.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
		name, claim, ok := names.ParseAttemptID(p.GetActivityId())
		node, lane, isNode := names.ParseNodeQueue(p.GetActivityOptions().GetTaskQueue().GetName())
		if started && ok && isNode && lane != names.ControlLane && p.GetActivityType().GetName() == names.ExecuteActivity {
			found = append(found, attempt{name, claim, node})
		}
	}
	return found
}

// pendingOf returns the pending activities of a run that may include attempts of a task or instance. An empty task means all
// activities.
func (h *Hub) pendingOf(ctx context.Context, desc *runview.Description, task string) ([]*workflowpb.PendingActivityInfo, error) {
	found := desc.GetPendingActivities()
	for _, part := range runview.OpenParts(desc, task) {
		child, err := h.config.Client.DescribeWorkflowExecution(ctx, part, "")
		if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
			continue
		}
		if err != nil {
			return nil, err
		}
		if runview.IsOpen(child.GetWorkflowExecutionInfo().GetStatus()) {
			found = append(slices.Clip(found), child.GetPendingActivities()...)
		}
	}
	return found, nil
}

// LoginKeys returns the public keys that may log in to machines of a run, one per line, by task or instance. The nodes
// report these keys because templates computed them.
func (h *Hub) LoginKeys(ctx context.Context, desc *runview.Description) (map[string]string, error) {
	pending, err := h.pendingOf(ctx, desc, "")
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	runview.LoginKeys(keys, pending)
	return keys, nil
}

// attemptsOf returns the attempts of a run that may belong to a task or instance. An empty task means all attempts.
func (h *Hub) attemptsOf(ctx context.Context, desc *runview.Description, task string) ([]attempt, error) {
	pending, err := h.pendingOf(ctx, desc, task)
	if err != nil {
		return nil, err
	}
	found := attemptsAmong(pending)
	slices.SortFunc(found, func(a, b attempt) int { return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(b.claim, a.claim)) })
	// If a task has two dispatches, the newer one counts.
	return slices.CompactFunc(found, func(a, b attempt) bool { return a.name == b.name }), nil
}

// sessionPurpose ends the texts of errors about tasks that cannot be entered.
const sessionPurpose = "sessions need a running task"

// find returns the attempt that a task or instance names, or the only attempt that fits if task is empty. purpose ends the
// texts of errors.
func (h *Hub) find(ctx context.Context, desc *runview.Description, task, purpose string, isFit func(attempt) bool) (attempt, error) {
	run := desc.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	if !runview.IsOpen(desc.GetWorkflowExecutionInfo().GetStatus()) {
		return attempt{}, h.errNotRunning(ctx, run, task, purpose)
	}
	found, err := h.attemptsOf(ctx, desc, task)
	if err != nil {
		return attempt{}, err
	}
	fits := slices.DeleteFunc(slices.Clone(found), func(a attempt) bool {
		base, _, isInstance := names.ParseInstanceName(a.name)
		if task == "" {
			return !isFit(a)
		}
		return a.name != task && (!isInstance || base != task)
	})
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return attempt{}, errSeveralRunning(run, task, fits)
	case task == "" && len(found) > 0:
		return attempt{}, rpcerror.WrongState("run %s is running only %s, which does not fit; %s", run, formatNames(found), purpose)
	}
	if lead, ok := h.leadOf(ctx, run, task); ok {
		if i := slices.IndexFunc(found, func(a attempt) bool { return a.name == lead }); i >= 0 {
			return attempt{task, found[i].claim, found[i].node}, nil
		}
	}
	return attempt{}, h.errNotRunning(ctx, run, task, purpose)
}

// formatNames returns the names of the first maxListed attempts for an error text.
func formatNames(found []attempt) string {
	first := make([]string, 0, maxListed)
	for _, a := range found[:min(len(found), maxListed)] {
		first = append(first, a.name)
	}
	if len(found) > maxListed {
		first = append(first, "...")
	}
	return strings.Join(first, ", ")
}

// errSeveralRunning returns the error for a request that could mean several attempts.
func errSeveralRunning(run, task string, found []attempt) error {
	what := "run " + run + " has"
	if task != "" {
		what = "task " + task + " of run " + run + " has"
	}
	return rpcerror.Invalid("%s %d running attempts; name one of %s", what, len(found), formatNames(found))
}

// leadOf returns the first instance of the batch that an instance runs in.
func (h *Hub) leadOf(ctx context.Context, run, name string) (string, bool) {
	task, _, isInstance := names.ParseInstanceName(name)
	if !isInstance {
		return "", false
	}
	view, err := h.config.Reader.Read(ctx, run)
	if err != nil {
		return "", false
	}
	ref, err := h.config.Reader.TaskRef(ctx, view, name)
	if err != nil || ref.Instance == nil || ref.Instance.Instance.Lead == nil || ref.Brief().GetState() != v1.TaskRunning {
		return "", false
	}
	return names.InstanceName(task, int(ref.Instance.Instance.GetLead())), true
}

// errNotRunning returns the error that says why a task of a run has no running attempt.
func (h *Hub) errNotRunning(ctx context.Context, run, task, purpose string) error {
	view, err := h.config.Reader.Read(ctx, run)
	if err != nil {
		return err
	}
	if task == "" {
		if state := view.Run.GetState(); v1.IsRunTerminal(state) {
			return rpcerror.WrongState("run %s has ended (%s); %s", run, state, purpose)
		}
		return rpcerror.WrongState("no task of run %s is running on a node; %s", run, purpose)
	}
	ref, err := h.config.Reader.TaskRef(ctx, view, task)
	if err != nil {
		return err
	}
	brief := ref.Brief()
	switch state := brief.GetState(); {
	case v1.IsTaskAway(state, brief.GetNotice()):
		return rpcerror.WrongState("task %s of run %s is lost until its node is back: %s", task, run, brief.GetNotice())
	case v1.IsTaskTerminal(state):
		return rpcerror.WrongState("task %s of run %s has ended (%s); %s", task, run, state, purpose)
	case state == v1.TaskRunning:
		return rpcerror.WrongState("task %s of run %s is running, but not on a node; %s", task, run, purpose)
	default:
		return rpcerror.WrongState("task %s of run %s is not running but %s; %s", task, run, state, purpose)
	}
}
