package a2a

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	v1 "switchyard/proto/switchyard/v1"
)

// observation is the known state of a run and its tasks.
type observation struct {
	run *v1.Run
	// asked holds the questions of waiting approvals by task.
	asked map[string]string
	// fannedOut marks the tasks in asked that fanned out and have waiting instances.
	fannedOut map[string]bool
	// inputs holds the declared inputs of approval tasks by task. It is nil until a task has asked and the definition was read.
	inputs map[string]map[string]any
	// ended marks the tasks that have ended; total is the number of tasks of the run.
	ended map[string]bool
	total int
}

// update updates the observation with the current state of tasks.
func (o *observation) update(tasks map[string]*v1.Task) {
	if o.asked == nil {
		o.asked, o.fannedOut, o.ended = map[string]string{}, map[string]bool{}, map[string]bool{}
	}
	for name, task := range tasks {
		delete(o.asked, name)
		delete(o.fannedOut, name)
		delete(o.ended, name)
		switch {
		case v1.HasTaskEnded(task):
			o.ended[name] = true
		case task.GetType() == v1.TypeApproval && task.GetState() == v1.TaskPaused:
			o.asked[name] = task.GetError()
		case task.GetType() == v1.TypeApproval && task.GetCounts()[v1.TaskPaused] > 0:
			o.asked[name] = fmt.Sprintf("%d of %d instances are pending; decide each as %s[INDEX]", task.GetCounts()[v1.TaskPaused], task.GetCount(), name)
			o.fannedOut[name] = true
		}
	}
}

// approval is a waiting approval, with the inputs that it declares.
type approval struct {
	task, asks string
	inputs     map[string]any
}

// readInputs reads the inputs of the waiting approvals, unless they are known. They are missing while the definition cannot be read.
func (a *agent) readInputs(ctx context.Context, o *observation) {
	if len(o.asked) == 0 || o.inputs != nil {
		return
	}
	res, err := a.Runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: o.run.GetId()}))
	if err != nil {
		return
	}
	o.inputs = map[string]map[string]any{}
	for name, task := range v1.AllTasks(res.Msg.GetDefinition()) {
		if task.GetType() == v1.TypeApproval {
			o.inputs[name] = task.GetSpec().GetFields()["inputs"].GetStructValue().AsMap()
		}
	}
}

// approvals returns the waiting approvals, ordered by task.
func (o *observation) approvals() []approval {
	var all []approval
	for _, task := range slices.Sorted(maps.Keys(o.asked)) {
		all = append(all, approval{task, o.asked[task], o.inputs[task]})
	}
	return all
}

// states maps run states to task states of the protocol.
var states = map[string]a2a.TaskState{
	v1.RunPending:         a2a.TaskStateSubmitted,
	v1.RunPendingApproval: a2a.TaskStateAuthRequired,
	v1.RunRunning:         a2a.TaskStateWorking,
	v1.RunPaused:          a2a.TaskStateWorking,
	v1.RunCompleted:       a2a.TaskStateCompleted,
	v1.RunFailed:          a2a.TaskStateFailed,
	v1.RunCancelled:       a2a.TaskStateCanceled,
	v1.RunRejected:        a2a.TaskStateRejected,
}

// state returns the state of the run as a task state of the protocol.
func (o *observation) state() a2a.TaskState {
	state := states[o.run.GetState()]
	if state == a2a.TaskStateAuthRequired && o.run.GetApproval().GetState() != v1.ApprovalPending {
		state = a2a.TaskStateWorking // the run has started, and only approvals are left
	}
	if state == a2a.TaskStateWorking && len(o.asked) > 0 {
		return a2a.TaskStateInputRequired
	}
	return state
}

// isInterrupted reports whether a task waits for its client.
func isInterrupted(state a2a.TaskState) bool {
	return state == a2a.TaskStateInputRequired || state == a2a.TaskStateAuthRequired
}

// isSettled reports whether a task has ended or waits for its client.
func isSettled(state a2a.TaskState) bool { return state.Terminal() || isInterrupted(state) }

// text describes the state to people and models.
func (o *observation) text() string {
	switch state := o.state(); {
	case state == a2a.TaskStateAuthRequired:
		return "the run awaits approval by an operator; " + decisionHelp + versionHelp(o.run.GetApproval().GetDefinitionVersion())
	case state == a2a.TaskStateInputRequired:
		var lines []string
		for _, asked := range o.approvals() {
			line := strings.TrimRight(asked.task+" asks for approval: "+asked.asks, ": ")
			if len(asked.inputs) > 0 {
				line += "; its inputs are " + strings.Join(slices.Sorted(maps.Keys(asked.inputs)), ", ")
			}
			lines = append(lines, line)
		}
		return strings.Join(append(lines, decisionHelp), "\n")
	case o.run.GetError() != "":
		return o.run.GetError()
	case state.Terminal():
		return ""
	case o.run.GetProblem() != "":
		return o.run.GetProblem()
	}
	return fmt.Sprintf("%s; %d of %d tasks have ended", o.run.GetState(), len(o.ended), o.total)
}

// versionHelp returns how to approve a run that a retry has changed, or "" for a run as it was submitted.
func versionHelp(version int32) string {
	if version == 0 {
		return ""
	}
	return fmt.Sprintf("; a retry has changed the run, so an approval also has {%q: %d}", versionField, version)
}

// summary returns the state with its text. Equal summaries mean an unchanged status.
func (o *observation) summary() string { return o.state().String() + " " + o.text() }

// status returns the status of the task. Its time is the end of the run, or now if the run has not ended.
func (o *observation) status(now time.Time) a2a.TaskStatus {
	state, text := o.state(), o.text()
	at := now.UTC()
	if state.Terminal() && o.run.GetCompletedAt() != nil {
		at = o.run.GetCompletedAt().AsTime()
	}
	status := a2a.TaskStatus{State: state, Timestamp: &at}
	if text != "" {
		info := infoOf(o.run)
		status.Message = &a2a.Message{
			ID: fmt.Sprintf("%s:%s", info.TaskID, strings.TrimPrefix(state.String(), "TASK_STATE_")), Role: a2a.MessageRoleAgent,
			TaskID: info.TaskID, ContextID: info.ContextID, Parts: a2a.ContentParts{a2a.NewTextPart(text)},
		}
		if state == a2a.TaskStateInputRequired {
			status.Message.Parts = append(status.Message.Parts, a2a.NewDataPart(map[string]any{"approvals": approvalData(o.approvals())}))
		}
	}
	return status
}

// approvalData converts approvals to message data.
func approvalData(all []approval) []any {
	var data []any
	for _, asked := range all {
		one := map[string]any{"task": asked.task, "asks": asked.asks}
		if len(asked.inputs) > 0 {
			one["inputs"] = asked.inputs
		}
		data = append(data, one)
	}
	return data
}
