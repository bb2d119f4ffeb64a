package a2a

import (
	"context"
	"iter"
	"regexp"
	"sync"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	v1 "switchyard/proto/switchyard/v1"
)

// SendMessage starts a run, or decides an approval that a run waits for. It returns the run once the run has ended or needs
// input from the client, or immediately if the message asks for that.
func (a *agent) SendMessage(ctx context.Context, req *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	run, err := a.handleMessage(ctx, req)
	if err != nil {
		return nil, toProtocolError(ctx, err)
	}
	if req.Config == nil || !req.Config.ReturnImmediately {
		if err := a.awaitState(ctx, run, isSettled); err != nil {
			return nil, toProtocolError(ctx, err)
		}
	}
	task, err := a.read(ctx, run)
	if err != nil {
		return nil, toProtocolError(ctx, err)
	}
	return task, nil
}

// SendStreamingMessage does the same as SendMessage and streams the changes of the run until it has ended or needs input
// from the client.
func (a *agent) SendStreamingMessage(ctx context.Context, req *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		run, err := a.handleMessage(ctx, req)
		if err != nil {
			yield(nil, toProtocolError(ctx, err))
			return
		}
		a.follow(ctx, run, isSettled, yield)
	}
}

// handleMessage starts a run or applies a decision, as the message asks, and returns the ID of the run.
func (a *agent) handleMessage(ctx context.Context, req *a2a.SendMessageRequest) (run string, err error) {
	m := req.Message
	switch {
	case m == nil:
		return "", errorf(a2a.ErrInvalidParams, "the request has no `message`")
	case m.ID == "":
		return "", errorf(a2a.ErrInvalidParams, "the message has no `messageId`; set a unique one, so that the message can be sent again safely")
	case m.Role == a2a.MessageRoleAgent:
		return "", errorf(a2a.ErrInvalidParams, "the role of the message is %s; it must be %s", m.Role, a2a.MessageRoleUser)
	case req.Config != nil && req.Config.PushConfig != nil:
		return "", errNoPush()
	case m.TaskID != "":
		return string(m.TaskID), a.applyDecision(ctx, m)
	}
	return a.start(ctx, req)
}

// contextText matches valid context IDs, which are names of batches.
var contextText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })

// maxMessageID bounds the id of a message, in bytes.
const maxMessageID = 128

// start starts a run. If the same message is sent again, start returns the run that the first one started.
func (a *agent) start(ctx context.Context, req *a2a.SendMessageRequest) (run string, err error) {
	m := req.Message
	if m.ContextID != "" && !contextText().MatchString(m.ContextID) {
		return "", errorf(a2a.ErrInvalidParams, "%.80q is not a context id; use at most 63 characters of [A-Za-z0-9._-], starting with a letter or a digit", m.ContextID)
	}
	if len(m.ID) > maxMessageID {
		return "", errorf(a2a.ErrInvalidParams, "the `messageId` has %d bytes; the limit is %d", len(m.ID), maxMessageID)
	}
	def, err := a.skillOf(ctx, req)
	if err != nil {
		return "", err
	}
	input, err := inputOf(m, def)
	if err != nil {
		return "", err
	}
	batch := m.ContextID
	if batch == "" {
		batch = a2a.NewContextID()
	}
	res, err := a.Runs.SubmitRun(ctx, connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Workflow{Workflow: def.GetName()}, Input: input, Batch: batch,
		IdempotencyKey: "a2a:" + m.ContextID + ":" + m.ID,
	}))
	if err == nil {
		return res.Msg.GetId(), nil
	}
	switch connect.CodeOf(err) {
	case connect.CodeNotFound:
		return "", errorf(a2a.ErrInvalidParams, "skill %s no longer exists", def.GetName())
	case connect.CodeAlreadyExists:
		return "", errorf(a2a.ErrInvalidParams, "the `messageId` %q was already used for a different message; use a new one", m.ID)
	}
	return "", err
}
