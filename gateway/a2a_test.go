package gateway

import (
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// peer is another agent: a client of the Agent2Agent protocol.
type peer struct {
	*a2aclient.Client
	card *sdk.AgentCard
}

// peer returns an agent that uses one of the bindings of the card. An empty token means none.
func (f *fixture) peer(t *testing.T, binding sdk.TransportProtocol, token string) peer {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: tokenTransport{transport, token}}
	card, err := agentcard.NewResolver(client).Resolve(t.Context(), f.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	of := a2aclient.WithJSONRPCTransport(client)
	if binding == sdk.TransportProtocolHTTPJSON {
		of = a2aclient.WithRESTTransport(client)
	}
	made, err := a2aclient.NewFromCard(t.Context(), card, a2aclient.WithDefaultsDisabled(), of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Destroy() })
	return peer{made, card}
}

// skill returns the skill of the card with the given id.
func (p peer) skill(t *testing.T, id string) sdk.AgentSkill {
	t.Helper()
	at := slices.IndexFunc(p.card.Skills, func(s sdk.AgentSkill) bool { return s.ID == id })
	if at < 0 {
		t.Fatalf("the card has no skill %s: %v", id, p.card.Skills)
	}
	return p.card.Skills[at]
}

// storeSkill stores a workflow as a skill, with an approval task named gate. The token is that of an operator, or empty.
func (f *fixture) storeSkill(t *testing.T, name, inputs, token string) {
	t.Helper()
	workflows := dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, token)
	do(t, workflows.PutWorkflow, putRequest("name: "+name+"\ndescription: Builds "+name+"\na2a: true\n"+inputs+
		"tasks:\n  build: { type: shell, spec: { command: 'true' } }\n  gate: { type: approval, spec: { message: 'ship it?' }, dependsOn: [build] }\n"))
	eventually(t, "the skill is listed", func() bool {
		return answer(t, workflows.ListWorkflows, &v1.ListWorkflowsRequest{Search: name}).GetTotal() > 0
	})
}

// newMessage returns a message for a skill.
func newMessage(skill string, parts ...*sdk.Part) *sdk.SendMessageRequest {
	m := sdk.NewMessage(sdk.MessageRoleUser, parts...)
	m.Metadata = map[string]any{"skillId": skill}
	return &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{ReturnImmediately: true}}
}

// send sends a message that starts a run, and returns its task.
func (p peer) send(t *testing.T, req *sdk.SendMessageRequest) *sdk.Task {
	t.Helper()
	res, err := p.SendMessage(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	task, ok := res.(*sdk.Task)
	if !ok {
		t.Fatalf("the answer is no task: %v", res)
	}
	terminate(t, string(task.ID))
	return task
}

// replyTo returns a message to a task.
func replyTo(task *sdk.Task, parts ...*sdk.Part) *sdk.SendMessageRequest {
	return &sdk.SendMessageRequest{Message: sdk.NewMessageForTask(sdk.MessageRoleUser, task, parts...), Config: &sdk.SendMessageConfig{ReturnImmediately: true}}
}

// awaitApproval makes the approval task of a run wait for a decision.
func awaitApproval(t *testing.T, run string) {
	t.Helper()
	set(t, run, "gate", 1, &v1.Task{State: v1.TaskPaused, Type: v1.TypeApproval, Error: "ship it?"})
}

// TestAgentsTakeARunThroughItsLife lets an agent start, follow and approve a run over each binding, and read its results.
func TestAgentsTakeARunThroughItsLife(t *testing.T) {
	t.Parallel()
	for _, binding := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		t.Run(string(binding), func(t *testing.T) {
			t.Parallel()
			f := start(t)
			skill := "peer-life-" + strings.ToLower(string(binding[:4]))
			f.storeSkill(t, skill, "inputs:\n  n: { type: integer, required: true, description: how many }\n  text: { type: string, default: x }\n", "")
			p := f.peer(t, binding, "")
			offered := p.skill(t, skill)
			if !strings.Contains(offered.Description, "Builds "+skill) || !strings.Contains(offered.Description, "n: integer, required: how many") || p.card.SecuritySchemes != nil {
				t.Errorf("the card: %+v", p.card)
			}
			message := newMessage(skill, sdk.NewDataPart(map[string]any{"n": 3}), sdk.NewTextPart("hello"))
			task := p.send(t, message)
			if again := p.send(t, message); again.ID != task.ID {
				t.Errorf("the message sent again has started %s beside %s", again.ID, task.ID)
			}
			run := f.get(t, string(task.ID))
			if got := run.GetInput().AsMap(); got["n"] != 3.0 || got["text"] != "hello" || run.GetBatch() != task.ContextID {
				t.Errorf("input %v, batch %s, want the context %s", got, run.GetBatch(), task.ContextID)
			}

			events, stop := iter.Pull2(p.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: task.ID}))
			defer stop()
			if first := next(t, events).(*sdk.Task); first.ID != task.ID || first.Status.State.Terminal() {
				t.Errorf("first event: %+v", first)
			}
			output, _ := structpb.NewStruct(map[string]any{"image": "app:3"})
			set(t, string(task.ID), "build", 1, &v1.Task{State: v1.TaskCompleted, Type: v1.TypeShell, Result: &v1.TaskResult{Output: output}})
			awaitApproval(t, string(task.ID))
			var artifact *sdk.Artifact
			var asked sdk.TaskStatus
			for artifact == nil || asked.State != sdk.TaskStateInputRequired {
				switch event := next(t, events).(type) {
				case *sdk.TaskArtifactUpdateEvent:
					artifact = event.Artifact
				case *sdk.TaskStatusUpdateEvent:
					asked = event.Status
				}
			}
			if data, _ := artifact.Parts[0].Data().(map[string]any); artifact.Name != "build" || data["image"] != "app:3" {
				t.Errorf("artifact %+v", artifact)
			}
			if text := asked.Message.Parts[0].Text(); !strings.Contains(text, "gate asks for approval: ship it?") {
				t.Errorf("what is asked: %q", text)
			}

			if _, err := p.SendMessage(t.Context(), replyTo(task, sdk.NewTextPart("maybe"))); !errors.Is(err, sdk.ErrInvalidParams) || !strings.Contains(err.Error(), `"maybe" is not a decision`) {
				t.Errorf("a message that decides nothing: %v", err)
			}
			if _, err := p.SendMessage(t.Context(), replyTo(task, sdk.NewTextPart("Approve, looks good"))); err != nil {
				t.Errorf("approve: %v", err)
			}
			set(t, string(task.ID), "gate", 1, &v1.Task{State: v1.TaskCompleted, Type: v1.TypeApproval})
			end(t, string(task.ID), v1.RunCompleted)
			var last sdk.TaskStatus
			for !last.State.Terminal() {
				if event, ok := next(t, events).(*sdk.TaskStatusUpdateEvent); ok {
					last = event.Status
				}
			}
			if event, err, ok := events(); last.State != sdk.TaskStateCompleted || ok {
				t.Errorf("%s, then %v %v", last.State, event, err)
			}
			got, err := p.GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID})
			if err != nil || got.Status.State != sdk.TaskStateCompleted || len(got.Artifacts) != 0 && got.Artifacts[0].Name != "build" {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := p.SendMessage(t.Context(), replyTo(task, sdk.NewTextPart("approve"))); !errors.Is(err, sdk.ErrUnsupportedOperation) {
				t.Errorf("a message to a task that has ended: %v", err)
			}
		})
	}
}

// next returns the next event of a stream.
func next(t *testing.T, events func() (sdk.Event, error, bool)) sdk.Event {
	t.Helper()
	event, err, ok := events()
	if err != nil || !ok {
		t.Fatalf("the stream has ended: %v", err)
	}
	return event
}

// TestAgentsListAndCancelTasks lists tasks by state and context over several pages, and cancels one.
func TestAgentsListAndCancelTasks(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.storeSkill(t, "peer-list", "", "")
	p := f.peer(t, sdk.TransportProtocolJSONRPC, "")
	var started []*sdk.Task
	for range 3 {
		req := newMessage("peer-list")
		req.Message.ContextID = "peer-list-context"
		started = append(started, p.send(t, req))
	}
	awaitApproval(t, string(started[1].ID))
	list := func(req *sdk.ListTasksRequest) *sdk.ListTasksResponse {
		t.Helper()
		req.ContextID = "peer-list-context"
		res, err := p.ListTasks(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	eventually(t, "all are listed", func() bool { return len(list(&sdk.ListTasksRequest{}).Tasks) == 3 })
	first := list(&sdk.ListTasksRequest{PageSize: 2})
	second := list(&sdk.ListTasksRequest{PageSize: 2, PageToken: first.NextPageToken})
	if len(first.Tasks) != 2 || first.TotalSize != 3 || len(second.Tasks) != 1 || second.TotalSize != 3 || second.NextPageToken != "" {
		t.Errorf("pages: %d of %d, %d of %d", len(first.Tasks), first.TotalSize, len(second.Tasks), second.TotalSize)
	}
	if asking := list(&sdk.ListTasksRequest{Status: sdk.TaskStateInputRequired}).Tasks; len(asking) != 1 || asking[0].ID != started[1].ID {
		t.Errorf("tasks that ask: %v", asking)
	}
	if _, err := p.ListTasks(t.Context(), &sdk.ListTasksRequest{Status: "TASK_STATE_WORKIN"}); !errors.Is(err, sdk.ErrInvalidParams) || !strings.Contains(err.Error(), "TASK_STATE_WORKING") {
		t.Errorf("an unknown state: %v", err)
	}
	cancelled, err := p.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: started[0].ID, Metadata: map[string]any{"reason": "enough"}})
	if err != nil || cancelled.Status.State != sdk.TaskStateCanceled {
		t.Errorf("%+v, %v", cancelled, err)
	}
	if _, err := p.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: started[0].ID}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
		t.Errorf("cancelled twice: %v", err)
	}
	for _, err := range p.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: started[0].ID}) {
		if !errors.Is(err, sdk.ErrUnsupportedOperation) {
			t.Errorf("subscribed to a task that has ended: %v", err)
		}
	}
}

// TestMessagesOfAgentsAreRefusedWithTheRemedy sends messages that cannot start a run.
func TestMessagesOfAgentsAreRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	f := start(t)
	p := f.peer(t, sdk.TransportProtocolJSONRPC, "")
	refuse := func(req *sdk.SendMessageRequest, kind error, text string) {
		t.Helper()
		res, err := p.SendMessage(t.Context(), req)
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, %v; want %v with %q", res, err, kind, text)
		}
	}
	f.storeSkill(t, "peer-one", "inputs:\n  n: { type: integer, required: true }\n", "")
	f.storeSkill(t, "peer-two", "", "")
	f.putWorkflow(t, document("peer-hidden", "a"))
	p = f.peer(t, sdk.TransportProtocolJSONRPC, "")
	if p.skill(t, "peer-one"); slices.ContainsFunc(p.card.Skills, func(s sdk.AgentSkill) bool { return s.ID == "peer-hidden" }) {
		t.Error("a workflow without `a2a: true` is a skill")
	}
	refuse(newMessage("", sdk.NewTextPart("x")), sdk.ErrInvalidParams, "`skillId` in the metadata must be a string")
	none := newMessage("peer-one")
	none.Message.Metadata = nil
	refuse(none, sdk.ErrInvalidParams, "name one as `skillId` in the metadata of the message: ")
	refuse(newMessage("peer-oen"), sdk.ErrInvalidParams, `there is no skill "peer-oen"; did you mean peer-one?`)
	refuse(newMessage("peer-hidden"), sdk.ErrInvalidParams, `there is no skill "peer-hidden"`)
	refuse(newMessage("peer-one", sdk.NewDataPart(map[string]any{"n": "three"})), sdk.ErrInvalidParams, "n")
	refuse(newMessage("peer-one", sdk.NewDataPart([]any{3})), sdk.ErrInvalidParams, "must be an object")
	refuse(newMessage("peer-two", sdk.NewFileURLPart("https://example.com/x", "text/plain")), sdk.ErrUnsupportedContentType, "pass the URL of the file as an input")
	bad := newMessage("peer-two")
	bad.Message.ContextID = "no context"
	refuse(bad, sdk.ErrInvalidParams, "is not a context id")
	pushed := newMessage("peer-two")
	pushed.Config.PushConfig = &sdk.PushConfig{URL: "http://127.0.0.1/"}
	refuse(pushed, sdk.ErrPushNotificationNotSupported, "SubscribeToTask")
	unknown := newMessage("peer-two", sdk.NewTextPart("approve"))
	unknown.Message.TaskID = "no-such-run"
	refuse(unknown, sdk.ErrTaskNotFound, "no-such-run")
	first, same := newMessage("peer-two", sdk.NewTextPart("one")), newMessage("peer-two", sdk.NewTextPart("other"))
	task := p.send(t, first)
	refuse(replyTo(task, sdk.NewTextPart("approve")), sdk.ErrUnsupportedOperation, "does not wait for input")
	same.Message.ID = first.Message.ID
	refuse(same, sdk.ErrInvalidParams, "was already used for a different message")
	if _, err := p.GetTaskPushConfig(t.Context(), &sdk.GetTaskPushConfigRequest{TaskID: task.ID, ID: "x"}); !errors.Is(err, sdk.ErrPushNotificationNotSupported) {
		t.Errorf("push configuration: %v", err)
	}
	older := a2aclient.AttachServiceParams(t.Context(), a2aclient.ServiceParams{sdk.SvcParamVersion: {"0.3"}})
	if _, err := p.GetTask(older, &sdk.GetTaskRequest{ID: task.ID}); !errors.Is(err, sdk.ErrVersionNotSupported) {
		t.Errorf("an older version: %v", err)
	}
}

// TestAgentsSeeTheirOwnTasks checks that agents are limited to the rights of their tokens.
func TestAgentsSeeTheirOwnTasks(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	operator, _ := f.token(t, "peer-op", v1.RoleOperator)
	f.storeSkill(t, "peer-owned", "", operator)
	ann, _ := f.token(t, "peer-ann", v1.RoleUser)
	bob, _ := f.token(t, "peer-bob", v1.RoleUser)
	viewer, _ := f.token(t, "peer-viewer", v1.RoleViewer)
	binding := sdk.TransportProtocolJSONRPC
	owner, other, reader := f.peer(t, binding, ann), f.peer(t, binding, bob), f.peer(t, binding, viewer)
	if owner.card.SecuritySchemes["bearer"] == nil || len(owner.card.SecurityRequirements) != 1 {
		t.Errorf("the card says nothing of tokens: %+v", owner.card)
	}
	task := owner.send(t, newMessage("peer-owned"))
	awaitApproval(t, string(task.ID))
	eventually(t, "its owner's list has the task", func() bool {
		res, err := owner.ListTasks(t.Context(), &sdk.ListTasksRequest{})
		return err == nil && slices.ContainsFunc(res.Tasks, func(listed *sdk.Task) bool {
			return listed.ID == task.ID
		})
	})
	if res, err := other.ListTasks(t.Context(), &sdk.ListTasksRequest{}); err != nil || len(res.Tasks) != 0 {
		t.Errorf("another user's tasks are listed: %v, %v", res, err)
	}
	if _, err := other.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: task.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("cancel another user's task: %v", err)
	}
	for _, err := range other.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: task.ID}) {
		if !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("subscribe to another user's task: %v", err)
		}
	}
	if _, err := reader.SendMessage(t.Context(), newMessage("peer-owned")); !errors.Is(err, sdk.ErrUnauthorized) {
		t.Errorf("a viewer starts a run: %v", err)
	}
	if _, err := owner.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: task.ID}); err != nil {
		t.Errorf("its owner cannot cancel the task: %v", err)
	}
}
