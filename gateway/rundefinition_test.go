package gateway

import (
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// TestRunDefinitionIsReadable reads the definition of a run while it is open and after its end.
func TestRunDefinitionIsReadable(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "read-back", "a", "b")
	for _, closed := range []bool{false, true} {
		if closed {
			end(t, id, "failed")
		}
		res, err := f.client.GetRunDefinition(t.Context(), connect.NewRequest(&v1.GetRunDefinitionRequest{Id: id}))
		if err != nil {
			t.Fatal(err)
		}
		d := res.Msg.GetDefinition()
		if res.Msg.GetId() != id || d.GetName() != "read-back" || len(d.GetTasks()) != 2 || d.GetTasks()["a"].GetType() != "shell" {
			t.Errorf("closed %t: %v", closed, res.Msg)
		}
	}
	_, err := f.client.GetRunDefinition(t.Context(), connect.NewRequest(&v1.GetRunDefinitionRequest{Id: "nope-0k"}))
	wantCode(t, "an unknown run", err, connect.CodeNotFound)
}
