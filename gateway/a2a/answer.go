package a2a

import (
	"context"
	"errors"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// decision is the verdict that a message gives on an approval.
type decision struct {
	approve bool
	task    string // empty means the only waiting approval
	reason  string
	version int32 // of the run to approve; see ApproveRunRequest.definition_version
	input   *structpb.Struct
}

const decisionHelp = "a decision is text that begins with approve or reject, or a data part such as " + `{"decision": "approve", "task": "gate", "reason": "looks good"}`

// verdicts maps the words of a decision to whether they approve.
var verdicts = map[string]bool{"approve": true, v1.ApprovalApproved: true, "yes": true, "reject": false, v1.ApprovalRejected: false, "no": false}

const (
	// versionField is the field of a decision with the version of the run to approve.
	versionField = "definitionVersion"
	// inputField is the field of a decision with the inputs of an approval.
	inputField = "input"
)

// decisionOf parses a decision, either from the data fields `decision`, `task`, `reason`, `definitionVersion` and `input` or from text.
// The first word of the text decides and the rest is the reason.
func decisionOf(m *a2a.Message) (decision, error) {
	c, err := contentOf(m)
	if err != nil {
		return decision{}, err
	}
	word, reason, _ := strings.Cut(strings.TrimSpace(c.text), " ")
	d := decision{reason: strings.TrimSpace(reason)}
	if c.data != nil {
		fields := map[string]*string{"decision": &word, "task": &d.task, "reason": &d.reason}
		d.reason = c.text
		for name, value := range c.data {
			if version, isNumber := value.(float64); name == versionField && isNumber && version == float64(int32(version)) {
				d.version = int32(version)
				continue
			}
			if object, isObject := value.(map[string]any); name == inputField && isObject {
				if d.input, err = structpb.NewStruct(object); err != nil {
					return d, errorf(a2a.ErrInvalidParams, "`%s` in the data of the message: %v", name, err)
				}
				continue
			}
			text, isText := value.(string)
			field, known := fields[name]
			switch {
			case name == inputField:
				return d, errorf(a2a.ErrInvalidParams, "`%s` in the data of the message must be an object", name)
			case name == versionField:
				return d, errorf(a2a.ErrInvalidParams, "`%s` in the data of the message must be an integer", name)
			case !known:
				return d, errorf(a2a.ErrInvalidParams, "the data of the message has an unknown field %q; %s", name, decisionHelp)
			case !isText:
				return d, errorf(a2a.ErrInvalidParams, "`%s` in the data of the message must be a string; %s", name, decisionHelp)
			}
			*field = text
		}
	}
	approve, ok := verdicts[strings.ToLower(strings.Trim(word, ".,:;!"))]
	if !ok {
		return d, errorf(a2a.ErrInvalidParams, "%.80q is not a decision; %s", word, decisionHelp)
	}
	d.approve = approve
	return d, nil
}

// applyDecision applies the decision of a message to the approval that its run waits for.
func (a *agent) applyDecision(ctx context.Context, m *a2a.Message) error {
	now, err := a.observe(ctx, string(m.TaskID))
	if err != nil {
		return err
	}
	state := now.state()
	switch {
	case m.ContextID != "" && m.ContextID != contextOf(now.run):
		return errorf(a2a.ErrInvalidParams, "task %s belongs to context %s, not %s", m.TaskID, contextOf(now.run), m.ContextID)
	case state.Terminal():
		return errorf(a2a.ErrUnsupportedOperation, "task %s has ended; send a message without `taskId` to start another", m.TaskID)
	case !isInterrupted(state):
		return errorf(a2a.ErrUnsupportedOperation, "task %s does not wait for input; use SubscribeToTask to follow it or CancelTask to cancel it", m.TaskID)
	}
	d, err := decisionOf(m)
	if err != nil {
		return err
	}
	if state == a2a.TaskStateAuthRequired {
		return a.decideRun(ctx, now.run.GetId(), d)
	}
	return a.decideTask(ctx, now, d)
}

// decideRun approves or rejects the start of a run.
func (a *agent) decideRun(ctx context.Context, run string, d decision) error {
	if d.task != "" || d.input != nil {
		return errorf(a2a.ErrInvalidParams, "task %s waits for the approval of the whole run, which has no inputs; leave `task` and `input` out to decide about all of it", run)
	}
	if d.approve {
		_, err := a.Runs.ApproveRun(ctx, connect.NewRequest(&v1.ApproveRunRequest{Id: run, Reason: d.reason, DefinitionVersion: d.version}))
		return err
	}
	_, err := a.Runs.RejectRun(ctx, connect.NewRequest(&v1.RejectRunRequest{Id: run, Reason: d.reason}))
	return err
}

// decideTask approves or rejects an approval task of a run.
func (a *agent) decideTask(ctx context.Context, now *observation, d decision) error {
	var waiting []string
	for _, asked := range now.approvals() {
		waiting = append(waiting, asked.task)
	}
	switch {
	case d.task == "" && len(waiting) > 1:
		return errorf(a2a.ErrInvalidParams, "%d approvals are pending; name one as `task` in a data part: %s", len(waiting), listNames(waiting))
	case d.task == "":
		d.task = waiting[0]
	}
	lead, _, isInstance := strings.Cut(d.task, "[")
	switch {
	case now.fannedOut[lead] && !isInstance:
		return errorf(a2a.ErrInvalidParams, "instances of %s are pending; name one, such as %s[0], as `task` in a data part", lead, lead)
	case !slices.Contains(waiting, lead):
		return errorf(a2a.ErrInvalidParams, "%q is not a pending approval; pending are %s", d.task, listNames(waiting))
	}
	var err error
	if d.approve {
		_, err = a.Runs.ApproveTask(ctx, connect.NewRequest(&v1.ApproveTaskRequest{Id: now.run.GetId(), Task: d.task, Reason: d.reason, Input: d.input}))
	} else {
		_, err = a.Runs.RejectTask(ctx, connect.NewRequest(&v1.RejectTaskRequest{Id: now.run.GetId(), Task: d.task, Reason: d.reason}))
	}
	if coded, ok := errors.AsType[*connect.Error](err); ok && coded.Code() == connect.CodeNotFound {
		return errorf(a2a.ErrInvalidParams, "%s", coded.Message()) // the task of the protocol is the run, and the run exists
	}
	return err
}
