package cli

import (
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

func TestRunActionsSendRequestsAndSuggestRemedies(t *testing.T) {
	f := fake(t)
	for _, test := range []struct {
		args   []string
		asked  proto.Message
		said   string // on standard error
		remedy string // when the request is refused
	}{
		{
			[]string{"pause", "night", "--reason", "lunch"}, &v1.PauseRunRequest{Id: "night", Reason: "lunch"},
			"run nightly-4g5h6jkm is paused; `switchyard runs resume nightly-4g5h6jkm` continues it\n", "switchyard runs get night",
		},
		{[]string{"resume", "night"}, &v1.ResumeRunRequest{Id: "night"}, "run nightly-4g5h6jkm continues\n", "switchyard runs retry night"},
		{
			[]string{"hold", "night", "each[3]", "--reason", "wait"}, &v1.HoldTaskRequest{Id: "night", Task: "each[3]", Reason: "wait"},
			"task each[3] of run nightly-4g5h6jkm is held; `switchyard runs release nightly-4g5h6jkm 'each[3]'` lets it start\n",
			"only a task that has not started can be held; `switchyard runs cancel night 'each[3]'` stops a running one",
		},
		{
			[]string{"release", "night", "build"}, &v1.ReleaseTaskRequest{Id: "night", Task: "build"},
			"task build of run nightly-4g5h6jkm may start\n", "switchyard runs get night",
		},
		{
			[]string{"approve", "night", "ship", "--reason", "ok"}, &v1.ApproveTaskRequest{Id: "night", Task: "ship", Reason: "ok"},
			"task ship of run nightly-4g5h6jkm is approved\n", "switchyard runs get night",
		},
		{
			[]string{"approve", "night", "--definition-version", "2"}, &v1.ApproveRunRequest{Id: "night", DefinitionVersion: 2},
			"run nightly-4g5h6jkm is approved\n", "switchyard runs get night",
		},
		{
			[]string{"reject", "night", "ship", "--reason", "no"}, &v1.RejectTaskRequest{Id: "night", Task: "ship", Reason: "no"},
			"task ship of run nightly-4g5h6jkm is rejected\n", "switchyard runs get night",
		},
		{
			[]string{"cancel", "night", "build", "--reason", "no"}, &v1.CancelTaskRequest{Id: "night", Task: "build", Reason: "no"},
			"task build of run nightly-4g5h6jkm is being cancelled\n", "switchyard runs get night",
		},
		{
			[]string{"pause", "night", "each[3]", "--reason", "lunch"}, &v1.PauseTaskRequest{Id: "night", Task: "each[3]", Reason: "lunch"},
			"task each[3] of run nightly-4g5h6jkm is paused; `switchyard runs resume nightly-4g5h6jkm 'each[3]'` continues it\n",
			"only a running task can be paused; `switchyard runs hold night 'each[3]'` keeps a waiting one from starting",
		},
		{
			[]string{"resume", "night", "build"}, &v1.ResumeTaskRequest{Id: "night", Task: "build"},
			"task build of run nightly-4g5h6jkm continues\n", "only a task paused by `switchyard runs pause night build` can be resumed",
		},
		{
			[]string{"stop", "night", "box", "--reason", "done"}, &v1.StopTaskRequest{Id: "night", Task: "box", Reason: "done"},
			"task box of run nightly-4g5h6jkm is being stopped\n", "only a task that runs until stopped, such as a vps, can be stopped; `switchyard runs get night`",
		},
		{
			[]string{"restart", "night", "box"}, &v1.RestartTaskRequest{Id: "night", Task: "box"},
			"task box of run nightly-4g5h6jkm has been restarted\n", "only a running vps can be restarted; `switchyard runs get night`",
		},
		{
			[]string{"kill", "night", "build", "--reason", "stuck"}, &v1.KillTaskRequest{Id: "night", Task: "build", Reason: "stuck"},
			"task build of run nightly-4g5h6jkm is being killed\n", "a task that has ended cannot be killed; `switchyard runs get night`",
		},
		{
			[]string{"retry", "night"}, &v1.RetryRunRequest{Id: "night"},
			"run nightly-4g5h6jkm continues with the tasks that did not complete, generation 2\n", "switchyard dlq retry night TASK",
		},
		{
			[]string{"retry", "night", "--from", "a", "--from", "b"}, &v1.RetryRunRequest{Id: "night", From: []string{"a", "b"}},
			"run nightly-4g5h6jkm continues with a, b and all tasks below, generation 2\n", "switchyard runs cancel night",
		},
		{
			[]string{"retry", "night", "--max-turns", "a=100", "--max-cost", "b=$2.5", "--max-cost", "a=5"},
			&v1.RetryRunRequest{Id: "night", Limits: map[string]*v1.AgentLimits{"a": {MaxTurns: 100, MaxCostUsd: 5}, "b": {MaxCostUsd: 2.5}}},
			"run nightly-4g5h6jkm continues with the tasks that did not complete, generation 2\n", "switchyard dlq retry night TASK",
		},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			f.asked, f.fail = nil, nil
			args := append(append([]string{"runs"}, test.args...), "--gateway", f.url)
			got := run(t, args...)
			if got.code != 0 || got.stdout != "" || got.stderr != test.said {
				t.Errorf("%+v", got)
			}
			if len(f.asked) != 1 || !proto.Equal(f.asked[0], test.asked) {
				t.Errorf("asked %v", f.asked)
			}
			if got := run(t, append(args, "-o", "json")...); got.code != 0 || !strings.Contains(got.stdout, `"id": "nightly-4g5h6jkm"`) || got.stderr != "" {
				t.Errorf("%+v", got)
			}
			f.fail = connect.NewError(connect.CodeAborted, errStopping)
			run(t, args...).ends(t, exit.CodeNotDone, test.remedy)
		})
	}
}

// TestApproverFillsInInputs gives inputs of an approval, with their types if the approver may access the run.
func TestApproverFillsInInputs(t *testing.T) {
	f := fake(t)
	nightly(f)
	spec, _ := structpb.NewStruct(map[string]any{"inputs": map[string]any{"tag": map[string]any{}, "n": map[string]any{"type": "integer"}}})
	f.definition = &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"ship": {Type: v1.TypeApproval, Spec: spec}}}
	approve := func(args ...string) result {
		f.asked = nil
		return run(t, append([]string{"runs", "approve", "night", "--gateway", f.url, "--input", "tag=1.10", "--input", "n=3"}, args...)...)
	}
	for _, test := range []struct {
		task string
		tag  any
	}{{"ship", "1.10"}, {"ship[2]", "1.10"}} {
		input, _ := structpb.NewStruct(map[string]any{"tag": test.tag, "n": 3.0})
		approve(test.task).ends(t, 0, "is approved")
		if want := (&v1.ApproveTaskRequest{Id: "night", Task: test.task, Input: input}); len(f.asked) != 1 || !proto.Equal(f.asked[0], want) {
			t.Errorf("asked %v, want %v", f.asked, want)
		}
	}
	f.definition = nil
	approve("ship").ends(t, 0, "is approved")
	if input := f.asked[0].(*v1.ApproveTaskRequest).GetInput().AsMap(); input["n"] != 3.0 {
		t.Errorf("an approver without access to the run sends %v", input)
	}
	approve().ends(t, exit.CodeUsage, "name the TASK")
	approve("ship", "--definition-version", "1").ends(t, exit.CodeUsage, "leave TASK out")
	f.fail = connect.NewError(connect.CodePermissionDenied, errors.New("task ship requires a decision by the role operator"))
	if got := approve("ship"); got.code != exit.CodeNotAllowed || !strings.Contains(got.stderr, "the role operator") || strings.Contains(got.stderr, "runs get") {
		t.Errorf("a wrong role: %+v", got)
	}
}

// TestRemedyOfARunThatHasEnded checks that no error suggests a command that an ended run also refuses.
func TestRemedyOfARunThatHasEnded(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.fail = connect.NewError(connect.CodeAborted, errStopping)
	for command, want := range map[string]string{"hold": "switchyard runs retry r", "retry": "switchyard runs rerun r"} {
		args := []string{"runs", command, "r", "build", "--gateway", f.url}
		if command == "retry" {
			args = append(args[:3:3], args[4:]...)
		}
		if got := run(t, args...); got.code != exit.CodeNotDone || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "runs cancel") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

func TestRetryCanFollowTheRun(t *testing.T) {
	f := fake(t)
	nightly(f)
	run(t, "runs", "retry", "night", "--watch", "--gateway", f.url).ends(t, exit.CodeNotDone, "run nightly-4g5h6jkm failed")
}

func TestRerun(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.run.Input, _ = structpb.NewStruct(map[string]any{"version": "1.10", "n": 1.0})
	got := run(t, "runs", "rerun", "night", "--input", "version=3", "--input", "n=4", "--input", "list=[1]", "--gateway", f.url)
	if got.code != 0 || got.stdout != "nightly-7n8p9qrs\n" {
		t.Errorf("%+v", got)
	}
	// The old version was a string, so the new one is too; "last" is resolved only once.
	input, _ := structpb.NewStruct(map[string]any{"version": "3", "n": 4.0, "list": []any{1.0}})
	if want := (&v1.RerunRunRequest{Id: fakeRun, Input: input}); !proto.Equal(f.asked[0], want) {
		t.Errorf("asked %v", f.asked[0])
	}
	if got := run(t, "runs", "rerun", "night", "-o", "json", "--gateway", f.url); got.stdout != "{\n  \"id\": \"nightly-7n8p9qrs\",\n  \"name\": \"nightly\"\n}\n" {
		t.Errorf("%+v", got)
	}
}

// TestRejectedRun checks that a rejected run does not count as completed.
func TestRejectedRun(t *testing.T) {
	f := fake(t)
	nightly(f)
	last := f.messages[len(f.messages)-1].Run
	last.State, last.Reason, last.Error = "rejected", "concurrency", "1 run of nightly is open, and there may be no more"
	run(t, "runs", "watch", "last", "--gateway", f.url).ends(t, exit.CodeNotDone, "there may be no more\nrun nightly-4g5h6jkm rejected")
}

func TestApprovalPromptIsPrinted(t *testing.T) {
	f := fake(t)
	completed(f)
	f.messages = append(f.messages[:1:1], append([]*v1.WatchRunResponse{{TaskCount: 4, Run: &v1.Run{
		Id: fakeRun, State: "pending_approval", Tasks: map[string]*v1.Task{"deploy": {State: "paused", Reason: "approval", Error: "ship it?"}},
	}}}, f.messages[1:]...)...)
	got := run(t, "runs", "watch", "last", "--gateway", f.url)
	want := "task deploy waits for approval: switchyard runs approve nightly-4g5h6jkm deploy --gateway " + f.url + " (or reject)\n"
	if strings.Count(got.stderr, want) != 1 || !strings.Contains(got.stderr, "  waits for approval: ship it?\n") {
		t.Errorf("%s", got.stderr)
	}
}

func TestWorkflows(t *testing.T) {
	f := fake(t)
	script(f, &v1.PutWorkflowResponse{Name: "hello"}, &v1.PutWorkflowResponse{Name: "hello", Replaced: true}, &v1.PutWorkflowResponse{Name: "hello"})
	script(f, &v1.ListWorkflowsResponse{Items: []*v1.StoredWorkflow{
		{Name: "hello", Description: "says\nhello", A2A: true, UpdatedAt: "2026-03-14T15:09:26Z", Cron: []string{"0 2 * * *"}, Timezone: "Europe/Rome", Paused: true},
	}})
	script(f, &v1.GetWorkflowResponse{})
	script(f, &v1.DeleteWorkflowResponse{})
	file := write(t, "f.yaml", hello)
	for _, test := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"put", file}, "", "workflow hello is stored; `switchyard submit --workflow hello` runs it\n"},
		{[]string{"put", file, "--replace"}, "", "workflow hello is replaced; `switchyard submit --workflow hello` runs it\n"},
		{[]string{"put", file, "-o", "json"}, "{\n  \"name\": \"hello\",\n  \"replaced\": false,\n  \"warnings\": []\n}\n", ""},
		{[]string{"list", "--search", "Says"}, "NAME   UPDATED               SCHEDULE                        A2A  DESCRIPTION\nhello  2026-03-14T15:09:26Z  0 2 * * * Europe/Rome (paused)  yes  says hello\n", ""},
		{[]string{"delete", "hello"}, "", "workflow hello is deleted; its runs are not affected\n"},
	} {
		if got := run(t, append(append([]string{"workflows"}, test.args...), "--gateway", f.url)...); got.code != 0 || got.stdout != test.stdout || got.stderr != test.stderr {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
	document := &v1.PutWorkflowRequest_Document{Document: hello}
	put, replace := &v1.PutWorkflowRequest{Source: document, File: file}, &v1.PutWorkflowRequest{Source: document, File: file, Replace: true}
	for i, want := range []proto.Message{
		put, replace, put, &v1.ListWorkflowsRequest{Search: "Says", PageSize: 100}, &v1.DeleteWorkflowRequest{Name: "hello"},
	} {
		if !proto.Equal(f.asked[i], want) {
			t.Errorf("asked %v, want %v", f.asked[i], want)
		}
	}
	script(f, &v1.PutWorkflowResponse{Name: "hello", Warnings: []*v1.Problem{{File: file, Line: 3, Column: 7, Path: "tasks.a", Message: "does little", Hint: "let it be"}}})
	warned := run(t, "workflows", "put", file, "-o", "json", "--gateway", f.url)
	if want := file + ":3:7: warning: does little\n  let it be\n"; warned.stderr != want || !strings.Contains(warned.stdout, `"line": 3`) {
		t.Errorf("%+v, want %q", warned, want)
	}
	f.fail = connect.NewError(connect.CodeAlreadyExists, errStopping)
	run(t, "workflows", "put", file, "--gateway", f.url).ends(t, exit.CodeNotDone, "use --replace to replace it with this definition")
	f.fail = connect.NewError(connect.CodeNotFound, errNoRun)
	for _, command := range []string{"get", "delete"} {
		run(t, "workflows", command, "hello", "--gateway", f.url).ends(t, exit.CodeUsage, "")
	}
}

// TestStoredWorkflowIsAValidDefinition checks that the output of `workflows get` is a valid definition.
func TestStoredWorkflowIsAValidDefinition(t *testing.T) {
	f := fake(t)
	d, err := readDocument(&system{stdin: strings.NewReader(hello)}, "-")
	must(t, err)
	script(f, &v1.GetWorkflowResponse{Definition: d.def, UpdatedAt: "2026-03-14T15:09:26Z"})
	for _, format := range []string{"json", "yaml"} {
		got := run(t, "workflows", "get", "hello", "-o", format, "--gateway", f.url)
		if got.code != 0 || strings.HasPrefix(got.stdout, "{") != (format == "json") {
			t.Fatalf("%s: %+v", format, got)
		}
		again, err := readDocument(&system{stdin: strings.NewReader(got.stdout)}, "-")
		must(t, err)
		if !proto.Equal(again.def, d.def) {
			t.Errorf("%s: %v, want %v", format, again.def, d.def)
		}
	}
}
