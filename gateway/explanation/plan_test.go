package explanation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// answerExplained is the number of tasks in a response of pairQueue.
const answerExplained = 2

// pairQueue finds a fitting node for the first tasks of each query.
type pairQueue struct{ asks int }

func (q *pairQueue) explain(_ context.Context, ask *historyv1.ExplainRequest) (*historyv1.ExplainResponse, error) {
	q.asks++
	said := &historyv1.ExplainResponse{}
	for range min(len(ask.GetMore()), answerExplained) {
		said.More = append(said.More, &historyv1.ExplainResponse{Nodes: []*v1.NodeVerdict{{Feasible: true}, {}}})
	}
	return said, nil
}

// parsedRun reads the document of a request.
type parsedRun struct{}

func (parsedRun) Prepare(_ context.Context, req *v1.SubmitRunRequest) (*historyv1.RunInput, source.Problems, error) {
	def, err := definition.Parse("d.yaml", []byte(req.GetDocument()))
	if err != nil {
		return nil, nil, err
	}
	references, err := definition.References(def)
	return &historyv1.RunInput{Definition: def, References: references}, nil, err
}

func TestPlanAsksAboutABoundedNumberOfKinds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: motley\ntasks:\n")
	for i := range maxPlanAsks*answerExplained + 5 {
		fmt.Fprintf(&b, "  t%03d: { type: shell, spec: { command: 'true' }, resources: { memoryMb: %d } }\n", i, i+1)
	}
	queue := &pairQueue{}
	plan, err := planner{parsedRun{}, queue, time.Now}.PlanRun(t.Context(), connect.NewRequest(&v1.PlanRunRequest{
		Submit: &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: b.String()}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for i, task := range plan.Msg.GetTasks() {
		want := "1 of 2 nodes"
		if i >= maxPlanAsks*answerExplained {
			want = "not checked: the tasks have 37 different sets of requirements"
		}
		if task.GetPlacement() != want {
			t.Errorf("task %d: %s, want %s", i, task.GetPlacement(), want)
		}
	}
	if queue.asks != maxPlanAsks {
		t.Errorf("it asked %d times", queue.asks)
	}
}

// TestPlanShowsHowEachTaskStarts plans a task of each kind.
func TestPlanShowsHowEachTaskStarts(t *testing.T) {
	t.Parallel()
	plan, err := planner{parsedRun{}, &pairQueue{}, time.Now}.PlanRun(t.Context(), connect.NewRequest(&v1.PlanRunRequest{
		Submit: &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: `
name: planned
defaults: { type: shell }
tasks:
  discover: { spec: { command: ls } }
  train: { spec: { command: train } }
  each: { spec: { command: 'true' }, dependsOn: [discover], foreach: discover.files }
  four: { spec: { command: 'true' }, parallel: 4 }
  ask: { type: approval, spec: { message: 'well?' }, dependsOn: [each] }
  report: { spec: { command: 'true' }, dependsOn: [ask, train], when: one_failed, condition: parent.train.exitCode == 3 }
  tidy: { spec: { command: 'true' }, dependsOn: [ask], onFailure: run }
  tell: { spec: { command: 'true' }, dependsOn: [discover], condition: parent.discover.exitCode == 1 }
  ship: { spec: { command: 'true' }, dependsOn: [discover], condition: workflow.context.channel == 'beta' }
`}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"discover": `0||`, "train": `0||`, "each": `1||one for each of discover.files`, "four": `0||4`, "ask": `2||`,
		"report": `3|all its parents have ended and one has failed and parent.train.exitCode == 3 is true|`,
		"tidy":   `3|all its parents have ended, whatever has become of them|`,
		"tell":   `1|all its parents have ended and parent.discover.exitCode == 1 is true|`,
		"ship":   `1|all its parents have ended and none has failed that the condition does not mention and workflow.context.channel == 'beta' is true|`,
	}
	isPlanned := map[string]bool{}
	for _, task := range plan.Msg.GetTasks() {
		name := task.GetTask()
		if got := fmt.Sprintf("%d|%s|%s", task.GetLevel(), task.GetStartsWhen(), task.GetInstances()); got != want[name] {
			t.Errorf("%s: %s, want %s", name, got, want[name])
		}
		if needsNode := name != "ask"; needsNode != (len(task.GetNodes()) == 2) || !needsNode && task.GetPlacement() != "needs no node" {
			t.Errorf("%s: %s, %v", name, task.GetPlacement(), task.GetNodes())
		}
		for _, parent := range task.GetDependsOn() {
			if !isPlanned[parent] {
				t.Errorf("%s comes before %s", name, parent)
			}
		}
		isPlanned[name] = true
	}
	if len(isPlanned) != len(want) {
		t.Errorf("planned are %v", isPlanned)
	}
}

// TestPlanTellsContainersApart checks that a plan asks separately about tasks whose containers have different
// requirements.
func TestPlanTellsContainersApart(t *testing.T) {
	def, err := definition.Parse("d.yaml", []byte(`
name: apart
tasks:
  plain: { type: container, spec: { image: a } }
  host: { type: container, spec: { image: a, network: host } }
  data: { type: container, spec: { image: a, mounts: [{ hostPath: /data, containerPath: /d }] } }
`))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for name, task := range def.GetTasks() {
		kind, err := placementKey(newTaskRequest(name, task, nil, time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		kinds[kind] = true
	}
	if len(kinds) != 3 {
		t.Errorf("three kinds of tasks are %d", len(kinds))
	}
}
