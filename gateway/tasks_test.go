package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// tasks returns a client of TaskService.
func (f *fixture) tasks(t *testing.T) switchyardv1connect.TaskServiceClient {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return switchyardv1connect.NewTaskServiceClient(&http.Client{Transport: transport}, f.server.URL())
}

// terminate ends runs at the end of the test.
func terminate(t *testing.T, ids ...string) {
	t.Helper()
	t.Cleanup(func() {
		for _, id := range ids {
			// The call fails if the run has already ended, as most have.
			_ = temporalClient.TerminateWorkflow(context.Background(), id, "", "the test is over")
		}
	})
}

// echo returns the spec of a shell task that prints text.
func echo(text string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"command": structpb.NewStringValue("echo " + text)}}
}

// TestSubmitTaskStartsARun starts runs of one task, over REST and over RPC.
func TestSubmitTaskStartsARun(t *testing.T) {
	t.Parallel()
	f := start(t)
	got := f.rest(t, "POST", "/v1/tasks", `{
		"name": "hello", "type": "shell", "spec": {"command": "echo hello"}, "env": {"WHO": "me"}, "secretEnv": {"TOKEN": "store:deploy"},
		"constraints": {"nodeLabels": ["linux"]}, "resources": {"cores": 2}, "retry": {"maxRetries": 1}, "timeout": "30s",
		"priority": 7, "input": {"n": 3}, "batch": "one-by-one", "idempotencyKey": "hello-1"
	}`, "Content-Type", jsonHeader)
	id, _ := got.value["id"].(string)
	if got.status != 201 || !strings.HasPrefix(id, "hello-") || got.value["task"] != "hello" || got.value["existed"] != false || got.header.Get("Location") != "/v1/runs/"+id {
		t.Fatalf("%d %s %v", got.status, got.text, got.header)
	}
	terminate(t, id)
	in := f.inputOf(t, id)
	task := in.GetDefinition().GetTasks()["hello"]
	if in.GetBatch() != "one-by-one" || in.GetDefinition().GetName() != "hello" || len(in.GetDefinition().GetTasks()) != 1 {
		t.Errorf("the run was started with %v", in)
	}
	if task.GetSpec().GetFields()["command"].GetStringValue() != "echo hello" || task.GetEnv()["WHO"] != "me" || task.GetSecretEnv()["TOKEN"] != "store:deploy" || task.GetPriority() != 7 || task.GetTimeout() != "30s" ||
		task.GetConstraints().GetNodeLabels()[0] != "linux" || task.GetResources().GetCores() != 2 || task.GetRetry().GetMaxRetries() != 1 ||
		task.GetInput().GetFields()["n"].GetNumberValue() != 3 || task.GetBatch() != nil {
		t.Errorf("the task is %v", task)
	}

	client := f.tasks(t)
	for _, c := range []struct{ name, kind, want string }{{"", "shell", "shell"}, {"again", "shell", "again"}} {
		res, err := client.SubmitTask(t.Context(), connect.NewRequest(&v1.SubmitTaskRequest{Name: c.name, Type: c.kind, Spec: echo("x"), IdempotencyKey: "k-" + c.want}))
		if err != nil || res.Msg.GetTask() != c.want || !strings.HasPrefix(res.Msg.GetId(), c.want+"-") {
			t.Fatalf("%v, %v", res, err)
		}
		terminate(t, res.Msg.GetId())
		repeated, err := client.SubmitTask(t.Context(), connect.NewRequest(&v1.SubmitTaskRequest{Name: c.name, Type: c.kind, Spec: echo("x"), IdempotencyKey: "k-" + c.want}))
		if err != nil || !repeated.Msg.GetExisted() || repeated.Msg.GetId() != res.Msg.GetId() {
			t.Errorf("the same again: %v, %v", repeated, err)
		}
		_, err = client.SubmitTask(t.Context(), connect.NewRequest(&v1.SubmitTaskRequest{Name: c.name, Type: c.kind, Spec: echo("y"), IdempotencyKey: "k-" + c.want}))
		wantCode(t, "another task under the key", err, connect.CodeAlreadyExists)
	}
	again := f.rest(t, "POST", "/v1/tasks", `{"name": "again", "type": "shell", "spec": {"command": "echo x"}, "idempotencyKey": "k-again"}`, "Content-Type", jsonHeader)
	if again.status != 200 || again.value["existed"] != true || again.header.Get("Location") != "" {
		t.Errorf("the same again by REST: %d %s", again.status, again.text)
	}
	if byHeader := f.rest(t, "POST", "/v1/tasks", `{"name": "again", "type": "shell", "spec": {"command": "echo x"}}`, "Content-Type", jsonHeader, "Idempotency-Key", "k-again"); byHeader.value["id"] != again.value["id"] || again.value["id"] == "" {
		t.Errorf("the same again with a header: %d %s", byHeader.status, byHeader.text)
	}
	warned := f.rest(t, "POST", "/v1/tasks", `{"type": "shell", "spec": {"command": "echo {{ inputs.x }}"}}`, "Content-Type", jsonHeader)
	if id, _ := warned.value["id"].(string); id != "" {
		terminate(t, id)
	}
	warnings, _ := warned.value["warnings"].([]any)
	if warned.status != 201 || len(warnings) == 0 || warnings[0].(map[string]any)["path"] != "spec.command" {
		t.Errorf("a text that nothing replaces: %d %s", warned.status, warned.text)
	}
}

// TestBadTaskNamesFieldsOfTheRequest checks that errors name the fields of the request.
func TestBadTaskNamesFieldsOfTheRequest(t *testing.T) {
	t.Parallel()
	f := start(t)
	for name, c := range map[string]struct{ body, path, message string }{
		"unknown field of the spec": {`{"name":"a","type":"shell","spec":{"comand":"true"}}`, "spec.comand", "comand"},
		"no command":                {`{"name":"a","type":"shell"}`, "spec.command", "missing"},
		"unknown type":              {`{"name":"a","type":"shel","spec":{}}`, "type", "shell"},
		"no type":                   {`{"spec":{"command":"true"}}`, "type", "missing"},
		"priority":                  {`{"type":"shell","spec":{"command":"true"},"priority":11}`, "priority", "11"},
		"retries":                   {`{"type":"shell","spec":{"command":"true"},"retry":{"maxRetries":-1}}`, "retry.maxRetries", "-1"},
		"pasted secret":             {`{"type":"shell","spec":{"command":"true"},"secretEnv":{"T":"hunter2-hunter2"}}`, "secretEnv.T", "is not a reference"},
		"variable":                  {`{"type":"shell","spec":{"command":"true"},"env":{"A-B":"x"}}`, "env.A-B", "A-B"},
		"pinned node":               {`{"type":"shell","spec":{"command":"true"},"constraints":{"targetNode":"A!"}}`, "constraints.targetNode", "A!"},
		"name":                      {`{"name":"a b","type":"shell","spec":{"command":"true"}}`, "name", "task name"},
		"name of workflows only":    {`{"name":"a.b","type":"shell","spec":{"command":"true"}}`, "name", "task name"},
		"batch":                     {`{"type":"shell","spec":{"command":"true"},"batch":"a b"}`, "", "batch"},
		"parent":                    {`{"type":"shell","spec":{"command":"true"},"dependsOn":["b"]}`, "", "dependsOn"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.rest(t, "POST", "/v1/tasks", c.body, "Content-Type", jsonHeader)
			if got.status != 400 || got.value["code"] != "invalid_argument" || !strings.Contains(got.message(), c.message) || strings.Contains(got.text, "tasks.") {
				t.Errorf("%d %s", got.status, got.text)
			}
			if want := fmt.Sprintf(`"path":%q`, c.path); c.path != "" && (strings.Count(strings.ReplaceAll(got.text, " ", ""), `"path":`) != 1 || !strings.Contains(strings.ReplaceAll(got.text, " ", ""), want)) {
				t.Errorf("there is not only %s: %s", want, got.text)
			}
		})
	}
}

// TestSubmitTasksRetriesStartTheRest checks that a batch starts what it can and reports the outcome of each task, and that a
// repeated request starts the rest.
func TestSubmitTasksRetriesStartTheRest(t *testing.T) {
	t.Parallel()
	f := start(t)
	type item struct {
		Index    int
		ID, Task string
		Existed  bool
		Error    *struct {
			Code, Message string
			Problems      []struct{ Path string }
		}
	}
	type answer struct {
		BatchID           string
		Accepted, Refused int
		Items             []item
	}
	send := func(body string) answer {
		t.Helper()
		got := f.rest(t, "POST", "/v1/tasks:batch", body, "Content-Type", jsonHeader)
		var a answer
		if err := json.Unmarshal([]byte(got.text), &a); err != nil || got.status != 200 {
			t.Fatalf("%d %s %v", got.status, got.text, err)
		}
		for _, item := range a.Items {
			if item.ID != "" {
				terminate(t, item.ID)
			}
		}
		return a
	}
	const good = `{"name":"good","type":"shell","spec":{"command":"true"}}`
	first := send(`{"idempotencyKey":"night","tasks":[` + good + `,{"name":"bad","type":"shell","spec":{"comand":"true"}},` + good + `,
		{"type":"shell","spec":{"command":"true"},"batch":"another"}]}`)
	if len(first.Items) != 4 || first.Accepted != 2 || first.Refused != 2 || first.BatchID == "" {
		t.Fatalf("%+v", first)
	}
	for i, item := range first.Items {
		if item.Index != i || (item.Error == nil) != (i%2 == 0) || (item.ID == "") == (i%2 == 0) {
			t.Errorf("item %d is %+v", i, item)
		}
	}
	if bad := first.Items[1].Error; bad.Code != "invalid_argument" || len(bad.Problems) != 1 || bad.Problems[0].Path != "spec.comand" || strings.Contains(bad.Message, "tasks.") {
		t.Errorf("the bad task has %+v", bad)
	}
	if first.Items[0].ID == first.Items[2].ID {
		t.Error("two tasks are one run")
	}
	eventually(t, "the runs of the batch are listed", func() bool {
		runs := f.rest(t, "GET", "/v1/runs?batch="+first.BatchID, "")
		items, _ := runs.value["items"].([]any)
		return len(items) == 2
	})
	second := send(`{"idempotencyKey":"night","tasks":[` + good + `,` + strings.Replace(good, "good", "mended", 1) + `,` + good + `]}`)
	if second.BatchID != first.BatchID || second.Accepted != 3 || second.Items[0].ID != first.Items[0].ID || !second.Items[2].Existed || second.Items[1].Existed {
		t.Errorf("%+v after %+v", second, first)
	}
	named := send(`{"batchId":"by-name","tasks":[` + good + `,` + good + `]}`)
	if named.BatchID != "by-name" || named.Accepted != 2 || f.inputOf(t, named.Items[1].ID).GetBatch() != "by-name" {
		t.Errorf("%+v", named)
	}
	for what, body := range map[string]string{
		"no tasks": `{"tasks":[]}`, "1,001 tasks": `{"tasks":[` + strings.Repeat(good+",", 1000) + good + `]}`, "a bad batch": `{"batchId":"a b","tasks":[` + good + `]}`,
	} {
		if got := f.rest(t, "POST", "/v1/tasks:batch", body, "Content-Type", jsonHeader); got.status != 400 {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
}
