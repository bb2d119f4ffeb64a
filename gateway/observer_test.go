package gateway

import (
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// TestObserverRefusesWrites checks that an observer can read and cannot change anything.
func TestObserverRefusesWrites(t *testing.T) {
	t.Parallel()
	nodes := &fakeNodes{nodes: map[string]*v1.Node{"a": {Name: "a", State: "active"}}}
	c, f := startNodes(t, Config{Nodes: nodes, Observer: true})
	if _, err := c.GetNode(t.Context(), connect.NewRequest(&v1.GetNodeRequest{Name: "a"})); err != nil {
		t.Error(err)
	}
	_, err := c.DrainNode(t.Context(), connect.NewRequest(&v1.DrainNodeRequest{Name: "a"}))
	wantCode(t, "drain through an observer", err, connect.CodeAborted)
	if nodes.drain != nil {
		t.Error("the node drains")
	}
	_, err = f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("observed", "a")}}))
	wantCode(t, "submit to an observer", err, connect.CodeAborted)
	if _, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{})); err != nil {
		t.Error(err)
	}
}
