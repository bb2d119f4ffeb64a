package gateway

import (
	"net/http"
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestObserverRefusesWrites checks that an observer can read and cannot change anything.
func TestObserverRefusesWrites(t *testing.T) {
	t.Parallel()
	nodes := &fakeNodes{nodes: map[string]*v1.Node{"a": {Name: "a", State: "active"}}}
	c, server := startNodes(t, nodes, func(cfg *Config) { cfg.Observer = true })
	if _, err := c.GetNode(t.Context(), connect.NewRequest(&v1.GetNodeRequest{Name: "a"})); err != nil {
		t.Error(err)
	}
	_, err := c.DrainNode(t.Context(), connect.NewRequest(&v1.DrainNodeRequest{Name: "a"}))
	wantCode(t, "drain through an observer", err, connect.CodeAborted)
	if nodes.drain != nil {
		t.Error("the node drains")
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	runs := switchyardv1connect.NewRunServiceClient(&http.Client{Transport: transport}, server.URL())
	_, err = runs.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("observed", "a")}}))
	wantCode(t, "submit to an observer", err, connect.CodeAborted)
	if _, err := runs.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{})); err != nil {
		t.Error(err)
	}
}
