package gateway

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

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

	client := dialService(t, f, switchyardv1connect.NewTaskServiceClient, "")
	for _, name := range []string{"", "again"} {
		req := &v1.SubmitTaskRequest{Name: name, Type: "shell", Spec: command("echo x"), IdempotencyKey: "k-" + name}
		first, again := do(t, client.SubmitTask, req), do(t, client.SubmitTask, req)
		terminate(t, first.GetId())
		if want := map[string]string{"": "shell", "again": "again"}[name]; first.GetTask() != want || !strings.HasPrefix(first.GetId(), want+"-") || !again.GetExisted() || again.GetId() != first.GetId() {
			t.Errorf("%v, and again %v", first, again)
		}
		req.Spec = command("echo y")
		refused(t, "another task under the key", client.SubmitTask, req, connect.CodeAlreadyExists)
	}
	for _, header := range [][]string{nil, {"Idempotency-Key", "k-again"}} {
		body := `{"name": "again", "type": "shell", "spec": {"command": "echo x"}`
		if header == nil {
			body += `, "idempotencyKey": "k-again"`
		}
		if again := f.rest(t, "POST", "/v1/tasks", body+"}", append(header, "Content-Type", jsonHeader)...); again.status != 200 || again.value["existed"] != true || again.header.Get("Location") != "" {
			t.Errorf("the same again by REST with the header %v: %d %s", header, again.status, again.text)
		}
	}
	warned := do(t, client.SubmitTask, &v1.SubmitTaskRequest{Type: "shell", Spec: command("echo {{ inputs.x }}")})
	terminate(t, warned.GetId())
	if w := warned.GetWarnings(); len(w) == 0 || w[0].GetPath() != "spec.command" {
		t.Errorf("a text that nothing replaces: %v", warned)
	}
}

// TestSubmitTasksRetriesStartTheRest checks that a batch starts what it can, and that a repeated request starts the rest.
func TestSubmitTasksRetriesStartTheRest(t *testing.T) {
	t.Parallel()
	f := start(t)
	const good, bad = `{"name":"good","type":"shell","spec":{"command":"true"}}`, `{"name":"bad","type":"shell","spec":{"comand":"true"}}`
	send := func(tasks ...string) (res *v1.SubmitTasksResponse, ids []string) {
		t.Helper()
		got := f.rest(t, "POST", "/v1/tasks:batch", `{"idempotencyKey":"night","tasks":[`+strings.Join(tasks, ",")+`]}`, "Content-Type", jsonHeader)
		res = &v1.SubmitTasksResponse{}
		if err := protojson.Unmarshal([]byte(got.text), res); err != nil || got.status != 200 {
			t.Fatalf("%d %s %v", got.status, got.text, err)
		}
		for _, item := range res.GetItems() {
			ids = append(ids, item.GetId())
		}
		terminate(t, ids...)
		return res, ids
	}
	first, started := send(good, bad, good)
	if first.GetAccepted() != 2 || first.GetRefused() != 1 || started[0] == started[2] || started[1] != "" || f.inputOf(t, started[0]).GetBatch() != first.GetBatchId() {
		t.Errorf("%v", first)
	}
	second, all := send(good, strings.Replace(good, "good", "mended", 1), good)
	if second.GetBatchId() != first.GetBatchId() || second.GetAccepted() != 3 || all[0] != started[0] || !second.GetItems()[2].GetExisted() || second.GetItems()[1].GetExisted() {
		t.Errorf("%v after %v", second, first)
	}
	for what, body := range map[string]string{
		"no tasks": `{"tasks":[]}`, "1,001 tasks": `{"tasks":[` + strings.Repeat(good+",", 1000) + good + `]}`, "a bad batch": `{"batchId":"a b","tasks":[` + good + `]}`,
	} {
		if got := f.rest(t, "POST", "/v1/tasks:batch", body, "Content-Type", jsonHeader); got.status != 400 {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
}
