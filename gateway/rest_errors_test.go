package gateway

import (
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// TestRESTRefusesCommonMistakes checks the status, code and message with which common mistakes are refused, in the order of
// the lifecycle of a workflow: stored, started, inspected, controlled, ended.
func TestRESTRefusesCommonMistakes(t *testing.T) {
	t.Parallel()
	f := start(t)
	yaml := func(text string) []string { return []string{text, "application/yaml"} }
	jsonBody := func(text string) []string { return []string{text, jsonHeader} }
	none := jsonBody("")
	stored := "name: refusing\ndescription: Refuses\ninputs: { count: { type: number, required: true } }\ntasks: { build: { type: shell, spec: { command: 'true' } } }\n"
	if put := f.rest(t, "POST", "/v1/workflows", stored, "Content-Type", "application/yaml"); put.status != 200 {
		t.Fatalf("put: %d %s", put.status, put.text)
	}
	open, closed := f.submit(t, "refusing-open"), f.submit(t, "refusing-closed")
	set(t, open, "test", 1, &v1.Task{State: v1.TaskCompleted, Type: v1.TypeShell})
	end(t, closed, "completed")
	running, ended := "/v1/runs/"+open, "/v1/runs/"+closed

	for _, c := range []struct {
		name, method, path string
		body               []string // and its content type
		status             int
		code               string
		words              []string
	}{
		{"a document that is no YAML", "POST", "/v1/workflows", yaml("name: x\ntasks: [\n"), 400, "invalid_argument", []string{"definition"}},
		{"an empty document", "POST", "/v1/workflows", yaml(" "), 400, "invalid_argument", nil},
		{"a name that cannot be", "POST", "/v1/workflows", yaml("name: A B\ntasks: { a: { type: shell, spec: { command: 'true' } } }"), 400, "invalid_argument", []string{"name", "A B"}},
		{"no tasks", "POST", "/v1/workflows", yaml("name: x\ntasks: {}"), 400, "invalid_argument", []string{"tasks"}},
		{"a task of no type", "POST", "/v1/workflows", yaml("name: x\ntasks: { a: { spec: { command: 'true' } } }"), 400, "invalid_argument", []string{"tasks.a", "type"}},
		{"a task of an unknown type", "POST", "/v1/workflows", yaml("name: x\ntasks: { a: { type: shel, spec: {} } }"), 400, "invalid_argument", []string{"tasks.a.type", "did you mean shell?"}},
		{"a misspelt field of a task", "POST", "/v1/workflows", yaml("name: x\ntasks: { a: { type: shell, spec: { comand: 'true' } } }"), 400, "invalid_argument", []string{"comand", "did you mean command?"}},
		{"an unknown parent", "POST", "/v1/workflows", yaml("name: x\ntasks: { a: { type: shell, spec: { command: 'true' }, dependsOn: [b] } }"), 400, "invalid_argument", []string{"tasks.a.dependsOn", "b"}},
		{"a cycle", "POST", "/v1/workflows", yaml("name: x\ntasks: { a: { type: shell, spec: { command: 'true' }, dependsOn: [a] } }"), 400, "invalid_argument", []string{"a"}},
		{"a cron that never fires", "POST", "/v1/workflows", yaml("name: x\nschedule: { cron: '0 0 30 2 *' }\ntasks: { a: { type: shell, spec: { command: 'true' } } }"), 400, "invalid_argument", []string{"schedule.cron"}},
		{"an unknown time zone", "POST", "/v1/workflows", yaml("name: x\nschedule: { cron: '0 2 * * *', timezone: Mars/Base }\ntasks: { a: { type: shell, spec: { command: 'true' } } }"), 400, "invalid_argument", []string{"schedule.timezone", "Mars/Base"}},
		{"a name that is taken", "POST", "/v1/workflows", yaml(stored), 409, "already_exists", []string{"refusing"}},
		{"the same name replaced", "POST", "/v1/workflows?replace=true", yaml(stored), 200, "", nil},

		{"an unknown workflow", "GET", "/v1/workflows/refusin", none, 404, "not_found", []string{"refusin"}},
		{"an unknown workflow deleted", "DELETE", "/v1/workflows/refusin", none, 404, "not_found", []string{"refusin"}},
		{"an unknown workflow triggered", "POST", "/v1/workflows/refusin/trigger", none, 404, "not_found", []string{"refusin"}},
		{"a run of an unknown workflow", "POST", "/v1/workflows/refusin/runs", jsonBody("{}"), 404, "not_found", []string{"refusin"}},
		{"an input that is missing", "POST", "/v1/workflows/refusing/trigger", none, 400, "invalid_argument", []string{"count"}},
		{"an input of another type", "POST", "/v1/workflows/refusing/trigger", jsonBody(`{"count": "many"}`), 400, "invalid_argument", []string{"count", "number"}},
		{"an input that is not declared", "POST", "/v1/workflows/refusing/trigger", jsonBody(`{"count": 1, "cuont": 2}`), 400, "invalid_argument", []string{"cuont"}},
		{"inputs that are no object", "POST", "/v1/workflows/refusing/trigger", jsonBody(`[1]`), 400, "invalid_argument", nil},

		{"an unknown run", "GET", "/v1/runs/refusing-none", none, 404, "not_found", []string{`no run "refusing-none"`}},
		{"an id with a NUL", "GET", "/v1/runs/a%00b", none, 400, "invalid_argument", nil},
		{"the tasks of an unknown run", "GET", "/v1/runs/refusing-none/tasks", none, 404, "not_found", []string{"refusing-none"}},
		{"the logs of an unknown run", "GET", "/v1/runs/refusing-none/logs", none, 404, "not_found", []string{"refusing-none"}},
		{"an unknown task", "GET", running + "/tasks/biuld", none, 404, "not_found", []string{"did you mean build?"}},
		{"the logs of an unknown task", "GET", running + "/tasks/biuld/logs", none, 404, "not_found", []string{"did you mean build?"}},
		{"tasks in an unknown state", "GET", running + "/tasks?state=runing", none, 400, "invalid_argument", []string{"state", "running"}},
		{"runs in an unknown state", "GET", "/v1/runs?state=runing", none, 400, "invalid_argument", []string{"state", "running"}},
		{"a page below zero", "GET", "/v1/runs?pageSize=-1", none, 400, "invalid_argument", []string{"page_size"}},
		{"an unknown parameter", "GET", "/v1/runs?stat=failed", none, 400, "invalid_argument", []string{"stat"}},

		{"resume of a run that runs", "POST", running + "/resume", none, 409, "aborted", []string{"running"}},
		{"pause", "POST", running + "/pause", none, 200, "", nil},
		{"pause of a run that is paused", "POST", running + "/pause", none, 409, "aborted", []string{"paused"}},
		{"resume", "POST", running + "/resume", none, 200, "", nil},
		{"retry of a run that is open", "POST", running + "/retry", none, 409, "aborted", []string{"open"}},
		{"pause of a task that has ended", "POST", running + "/tasks/test/pause", none, 409, "aborted", []string{"completed"}},
		{"resume of a task that is not suspended", "POST", running + "/tasks/test/resume", none, 409, "aborted", []string{"completed"}},
		{"kill of a task that has ended", "POST", running + "/tasks/test/kill", none, 409, "aborted", []string{"completed"}},
		{"approval of a task that has ended", "POST", running + "/tasks/test/approve", none, 409, "aborted", []string{"completed"}},
		{"retry of a task that is no dead letter", "POST", "/v1/dead-letters/" + open + "/test/retry", none, 409, "aborted", []string{"test"}},

		{"pause of a run that has ended", "POST", ended + "/pause", none, 409, "aborted", []string{"already completed"}},
		{"resume of a run that has ended", "POST", ended + "/resume", none, 409, "aborted", []string{"already completed"}},
		{"cancel of a run that has ended", "POST", ended + "/cancel", none, 409, "aborted", []string{"already completed"}},
		{"kill of a task of a run that has ended", "POST", ended + "/tasks/build/kill", none, 409, "aborted", []string{"already completed"}},
		{"retry of a run that completed", "POST", ended + "/retry", none, 409, "aborted", nil},
	} {
		got := f.rest(t, c.method, c.path, c.body[0], "Content-Type", c.body[1])
		code, _ := got.value["code"].(string)
		if got.status != c.status || code != c.code || c.code != "" && got.message() == "" {
			t.Errorf("%s: %d %.600s; want %d %s", c.name, got.status, got.text, c.status, c.code)
		}
		said := got.message() + strings.Join(got.places(), " ")
		for _, word := range c.words {
			if !strings.Contains(said, word) {
				t.Errorf("%s: %q lacks %q", c.name, said, word)
			}
		}
	}
}

// places returns the fields of a definition in which an error has found problems.
func (a httpAnswer) places() (paths []string) {
	details, _ := a.value["details"].([]any)
	for _, detail := range details {
		failure, _ := detail.(map[string]any)
		problems, _ := failure["problems"].([]any)
		for _, problem := range problems {
			fields, _ := problem.(map[string]any)
			path, _ := fields["path"].(string)
			paths = append(paths, path)
		}
	}
	return paths
}
