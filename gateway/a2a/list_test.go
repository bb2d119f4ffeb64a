package a2a

import (
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// endedRuns lists three ended runs, each with an output larger than half of maxArtifactBytes.
type endedRuns struct {
	switchyardv1connect.RunServiceClient
}

func (endedRuns) ListRuns(context.Context, *connect.Request[v1.ListRunsRequest]) (*connect.Response[v1.ListRunsResponse], error) {
	res := &v1.ListRunsResponse{}
	for _, id := range []string{"a", "b", "c"} {
		res.Items = append(res.Items, &v1.Run{Id: id, State: v1.RunCompleted})
	}
	return connect.NewResponse(res), nil
}

func (endedRuns) GetRun(_ context.Context, req *connect.Request[v1.GetRunRequest]) (*connect.Response[v1.GetRunResponse], error) {
	task := &v1.Task{State: v1.TaskCompleted}
	if !req.Msg.GetBrief() {
		task = completed("", map[string]any{"text": strings.Repeat("x", maxArtifactBytes*2/3)})
	}
	return connect.NewResponse(&v1.GetRunResponse{Run: &v1.Run{Id: req.Msg.GetId(), State: v1.RunCompleted, Tasks: map[string]*v1.Task{"t": task}}}), nil
}

// TestListBoundsArtifactsOfAllTasksTogether lists runs whose outputs together exceed the bound of an answer.
func TestListBoundsArtifactsOfAllTasksTogether(t *testing.T) {
	t.Parallel()
	a := &agent{Services: Services{Runs: endedRuns{}}, now: time.Now}
	res, err := a.ListTasks(t.Context(), &a2a.ListTasksRequest{IncludeArtifacts: true})
	if err != nil || len(res.Tasks) != 3 {
		t.Fatal(res, err)
	}
	if len(res.Tasks[0].Artifacts) != 1 || len(res.Tasks[2].Artifacts) != 0 || res.Tasks[2].Metadata["omittedArtifacts"] != 1 {
		t.Errorf("artifacts: %d, %d, %d; the last says %v", len(res.Tasks[0].Artifacts), len(res.Tasks[1].Artifacts), len(res.Tasks[2].Artifacts), res.Tasks[2].Metadata)
	}
	if res, err = a.ListTasks(t.Context(), &a2a.ListTasksRequest{}); err != nil || res.Tasks[0].Artifacts != nil {
		t.Errorf("artifacts without being asked for: %v, %v", res, err)
	}
}
