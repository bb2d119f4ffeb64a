package gateway

import (
	"fmt"
	"slices"
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

func (f *fixture) plan(t *testing.T, document string) (*v1.PlanRunResponse, error) {
	t.Helper()
	res, err := f.client.PlanRun(t.Context(), connect.NewRequest(&v1.PlanRunRequest{
		Submit: &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document}},
	}))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

// TestPlanRunStartsNothing plans a run with each kind of task, without starting anything.
func TestPlanRunStartsNothing(t *testing.T) {
	t.Parallel()
	f := start(t)
	plan, err := f.plan(t, `
name: planned
inputs: { channel: { default: beta } }
defaults: { type: shell }
tasks:
  discover: { spec: { command: ls } }
  train: { spec: { command: train }, constraints: { requiresGpu: true } }
  each: { spec: { command: 'true' }, dependsOn: [discover], foreach: discover.files }
  four: { spec: { command: 'true' }, parallel: 4 }
  ask: { type: approval, spec: { message: 'well?' }, dependsOn: [each] }
  report: { spec: { command: 'true' }, dependsOn: [ask, train], when: one_failed, condition: parent.train.exitCode == 3 }
  tidy: { spec: { command: 'true' }, dependsOn: [ask], onFailure: run }
  tell: { spec: { command: 'true' }, dependsOn: [discover], condition: parent.discover.exitCode == 1 }
  ship: { spec: { command: 'true' }, dependsOn: [discover], condition: workflow.input.channel == 'beta' }
`)
	if err != nil {
		t.Fatal(err)
	}
	if plan.GetName() != "planned" || plan.GetInput().AsMap()["channel"] != "beta" {
		t.Errorf("the plan is %v", plan)
	}
	tasks := map[string]*v1.PlannedTask{}
	var order []string
	for _, task := range plan.GetTasks() {
		tasks[task.GetTask()] = task
		order = append(order, task.GetTask())
	}
	want := map[string]string{
		"discover": `0|||1 of 2 nodes`,
		"train":    `0|||train#0 of type shell, 0 labels`,
		"each":     `1||one for each of discover.files|1 of 2 nodes`,
		"four":     `0||4|1 of 2 nodes`,
		"ask":      `2|||needs no node`,
		"report":   `3|all its parents have ended and one has failed and parent.train.exitCode == 3 is true||1 of 2 nodes`,
		"tidy":     `3|all its parents have ended, whatever has become of them||1 of 2 nodes`,
		"tell":     `1|all its parents have ended and parent.discover.exitCode == 1 is true||1 of 2 nodes`,
		"ship":     `1|all its parents have ended and none has failed that the condition does not mention and workflow.input.channel == 'beta' is true||1 of 2 nodes`,
	}
	for name, want := range want {
		task := tasks[name]
		if got := fmt.Sprintf("%d|%s|%s|%s", task.GetLevel(), task.GetStartsWhen(), task.GetInstances(), task.GetPlacement()); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if nodes := len(task.GetNodes()); nodes != 2 && name != "ask" || name == "ask" && nodes != 0 {
			t.Errorf("%s has %d nodes", name, nodes)
		}
		for _, parent := range task.GetDependsOn() {
			if slices.Index(order, parent) > slices.Index(order, name) {
				t.Errorf("%s comes before %s", name, parent)
			}
		}
	}
	if w := plan.GetWarnings(); len(w) != 0 {
		t.Errorf("warnings: %v", w)
	}
	far, err := f.plan(t, "name: far\ntasks: { a: { type: shell, spec: { command: 'echo {{ inputs.x }}' } } }\n")
	if err != nil || len(far.GetWarnings()) != 1 || far.GetWarnings()[0].GetPath() != "tasks.a.spec.command" {
		t.Errorf("the plan of a task with a text that nothing replaces: %v, %v", far, err)
	}
	if ids, _ := f.list(t, &v1.ListRunsRequest{Name: "planned"}); len(ids) != 0 {
		t.Errorf("it has started %v", ids)
	}
	_, err = f.plan(t, document("planned", "a")+"    dependsOn: [b]\n")
	wantCode(t, "a bad definition", err, connect.CodeInvalidArgument)
}
