package explanation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// answerExplained is the number of tasks in a response of pairQueue.
const answerExplained = 2

// pairQueue finds a fitting node for the first tasks of each query.
type pairQueue struct{ asks int }

func (q *pairQueue) explain(_ context.Context, ask *v1.ExplainRequest) (*v1.ExplainResponse, error) {
	q.asks++
	said := &v1.ExplainResponse{}
	for range min(len(ask.GetMore()), answerExplained) {
		said.More = append(said.More, &v1.ExplainResponse{Nodes: []*v1.NodeVerdict{{Feasible: true}, {}}})
	}
	return said, nil
}

// parsedRun reads the document of a request.
type parsedRun struct{}

func (parsedRun) Prepare(_ context.Context, req *v1.SubmitRunRequest) (*v1.RunInput, source.Problems, error) {
	def, err := definition.Parse("d.yaml", []byte(req.GetDocument()))
	return &v1.RunInput{Definition: def}, nil, err
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
