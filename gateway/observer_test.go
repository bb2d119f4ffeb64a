package gateway

import (
	"net/http"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestWrites knows of every procedure whether it changes something.
func TestWrites(t *testing.T) {
	// They start or follow something, and change nothing.
	reads := []string{
		switchyardv1connect.RunServiceWatchRunProcedure, switchyardv1connect.RunServiceStreamRunLogsProcedure, switchyardv1connect.RunServiceExplainTaskProcedure, switchyardv1connect.RunServicePlanRunProcedure,
	}
	services := v1.File_switchyard_v1_service_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			procedure := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
			read := slices.Contains(reads, procedure) || safe(m)
			if write := slices.Contains(writes, procedure); read == write {
				t.Errorf("%s: reads %t, writes %t", procedure, read, write)
			}
		}
	}
}

// safe says that a method is declared to have no side effects.
func safe(m protoreflect.MethodDescriptor) bool {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// TestObserver reads, and changes nothing.
func TestObserver(t *testing.T) {
	t.Parallel()
	nodes := &fakeNodes{nodes: map[string]*v1.Node{"a": {Name: "a", State: "active"}}}
	c, server := startNodes(t, nodes, func(cfg *Config) { cfg.Observer = true })
	if _, err := c.GetNode(t.Context(), connect.NewRequest(&v1.GetNodeRequest{Name: "a"})); err != nil {
		t.Error(err)
	}
	_, err := c.DrainNode(t.Context(), connect.NewRequest(&v1.DrainNodeRequest{Name: "a"}))
	wantCode(t, "drain through an observer", err, connect.CodeFailedPrecondition)
	if nodes.drain != nil {
		t.Error("the node drains")
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	runs := switchyardv1connect.NewRunServiceClient(&http.Client{Transport: transport}, server.URL())
	_, err = runs.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("observed", "a")}}))
	wantCode(t, "submit to an observer", err, connect.CodeFailedPrecondition)
	if _, err := runs.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{})); err != nil {
		t.Error(err)
	}
}
