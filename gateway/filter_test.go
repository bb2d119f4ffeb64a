package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	"switchyard/gateway/runindex"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// startedWith starts a scripted run with search attributes and returns its id.
func startedWith(t *testing.T, a visibility.Attributes) string {
	t.Helper()
	id := names.NewRunID(a.Workflow)
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: names.ControlQueue, TypedSearchAttributes: a.Typed(),
	}, names.RunWorkflow, &v1.RunInput{Definition: &v1.Definition{Name: a.Workflow}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The call fails if the run has already ended.
		_ = temporalClient.TerminateWorkflow(context.Background(), id, "", "the test is over")
	})
	return id
}

// TestListRunsFilters filters lists by the properties of runs, by their nodes and by submission time, with values in user
// notation.
func TestListRunsFilters(t *testing.T) {
	t.Parallel()
	f := start(t)
	now := time.Now()
	parent := f.submit(t, "filtered-parent")
	odd := "zone:a/1 (100%); --"
	one := visibility.Started("filtered", v1.TriggerSubmit, now)
	one.Nodes, one.Labels, one.Types, one.Text = []string{"gpu-1", "gpu-2"}, []string{"GPU", odd}, []string{"container", "shell"}, "disk full reads meters"
	two := visibility.StartedBy(parent, "filtered", now.Add(-3*time.Hour))
	two.Nodes, two.Labels, two.Types, two.Text = []string{"gpu-10"}, []string{"gpu", "größe"}, []string{"vps"}, "100% done"
	one.AddOrigin("ann@laptop"+auth.Unverified, "sweep-7")
	two.AddOrigin("ann", "sweep-70")
	first, second := startedWith(t, one), startedWith(t, two)
	for what, test := range map[string]struct {
		filter *v1.ListRunsRequest
		want   []string
	}{
		"none":                   {&v1.ListRunsRequest{}, []string{second, first}},
		"node":                   {&v1.ListRunsRequest{Node: "gpu-1"}, []string{first}},
		"node and type":          {&v1.ListRunsRequest{Node: "gpu-2", Type: "shell", Since: timestamppb.New(now.Add(-time.Hour))}, []string{first}},
		"another type":           {&v1.ListRunsRequest{Node: "gpu-2", Type: "vps"}, nil},
		"label":                  {&v1.ListRunsRequest{Label: "gpu"}, []string{second}},
		"label with signs":       {&v1.ListRunsRequest{Label: odd}, []string{first}},
		"label in UTF-8":         {&v1.ListRunsRequest{Label: "größe"}, []string{second}},
		"trigger":                {&v1.ListRunsRequest{Trigger: v1.TriggerChild}, []string{second}},
		"parent":                 {&v1.ListRunsRequest{Parent: parent[:len(parent)-1]}, []string{second}},
		"owner":                  {&v1.ListRunsRequest{Owner: "ann@laptop"}, []string{first}},
		"owner as runs show it":  {&v1.ListRunsRequest{Owner: "ann@laptop" + auth.Unverified}, []string{first}},
		"owner's prefix":         {&v1.ListRunsRequest{Owner: "ann"}, []string{second}},
		"batch":                  {&v1.ListRunsRequest{Batch: "sweep-7"}, []string{first}},
		"batch of another owner": {&v1.ListRunsRequest{Batch: "sweep-7", Owner: "ann"}, nil},
		"since":                  {&v1.ListRunsRequest{Since: timestamppb.New(now.Add(-time.Hour))}, []string{first}},
		"words":                  {&v1.ListRunsRequest{Text: "full"}, []string{first}},
		"words with a percent":   {&v1.ListRunsRequest{Text: "100%"}, []string{second}},
		"words of nothing":       {&v1.ListRunsRequest{Text: "absent"}, nil},
		"all of a node's prefix": {&v1.ListRunsRequest{Node: "gpu"}, nil},
	} {
		test.filter.Name = "filtered"
		var got []string
		eventually(t, what+": visibility has the runs", func() bool {
			got, _ = f.list(t, test.filter)
			return slices.Equal(got, test.want)
		})
	}
	for _, value := range []string{`x' OR WorkflowId != '`, `x\' OR WorkflowId != \'`, `a" OR "b`, `\`, "a\nb", "a?", " "} {
		for _, filter := range []*v1.ListRunsRequest{{Label: value}, {Node: value}, {Text: value}, {Type: value}, {Trigger: value}, {Name: value}, {Owner: value}, {Batch: value}} {
			_, err := f.client.ListRuns(t.Context(), connect.NewRequest(filter))
			wantCode(t, fmt.Sprintf("%q", value), err, connect.CodeInvalidArgument)
		}
		_, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Parent: value}))
		wantCode(t, fmt.Sprintf("parent %q", value), err, connect.CodeNotFound)
	}
	_, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Trigger: "magic"}))
	wantCode(t, "a trigger that is none", err, connect.CodeInvalidArgument)
	_, err = f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Parent: "filtered-nope"}))
	wantCode(t, "an unknown parent", err, connect.CodeNotFound)
}

// countingClient counts the executions that visibility returns.
type countingClient struct {
	client.Client
	listed atomic.Int64
}

func (c *countingClient) ListWorkflow(ctx context.Context, req *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	res, err := c.Client.ListWorkflow(ctx, req)
	c.listed.Add(int64(len(res.GetExecutions())))
	return res, err
}

// TestListByStateReadsNoOtherRuns checks that a list by state reads only the runs that it shows.
func TestListByStateReadsNoOtherRuns(t *testing.T) {
	t.Parallel()
	counting := &countingClient{Client: temporalClient}
	f := startConfigured(t, "mem://", Config{Client: counting})
	want := map[string][]string{}
	submitted := visibility.Started("many", v1.TriggerSubmit, time.Now())
	for range 12 {
		startedWith(t, submitted)
	}
	for _, state := range []string{"pending_approval", "paused"} {
		id := startedWith(t, submitted)
		signal(t, id, setSignal, &v1.StatusResponse{Run: &v1.Run{State: state}})
		want[state] = []string{id}
	}
	rejected := startedWith(t, submitted)
	end(t, rejected, "rejected")
	want["rejected"] = []string{rejected}
	for range 3 {
		end(t, startedWith(t, submitted), "failed")
	}
	listed := func(state string) (ids []string) {
		for _, run := range answer(t, f.client.ListRuns, &v1.ListRunsRequest{Name: "many", State: state}).GetItems() {
			ids = append(ids, run.GetId())
		}
		return ids
	}
	eventually(t, "visibility has all of them", func() bool {
		return len(listed("running")) == 12 && len(listed("failed")) == 3 && len(listed("pending")) == 0
	})
	for state, want := range want {
		eventually(t, "visibility has the run that is "+state, func() bool { return slices.Equal(listed(state), want) })
		counting.listed.Store(0)
		// Each time window that is searched finds the same run again.
		if got := listed(state); !slices.Equal(got, want) || counting.listed.Load() > int64(len(runindex.ListWindows)+1) {
			t.Errorf("%s: %v after %d executions were read", state, got, counting.listed.Load())
		}
	}
}
