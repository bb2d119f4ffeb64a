package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// watched answers WatchRun with one message, and refuses every other call.
type watched struct {
	switchyardv1connect.UnimplementedRunServiceHandler
}

func (watched) WatchRun(_ context.Context, req *connect.Request[v1.WatchRunRequest], stream *connect.ServerStream[v1.WatchRunResponse]) error {
	return stream.Send(&v1.WatchRunResponse{Run: &v1.Run{Id: req.Msg.GetId()}})
}

func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// TestCallsWithoutSideEffectsAreSentAgain cuts the connections of a gateway that has received a call.
func TestCallsWithoutSideEffectsAreSentAgain(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewRunServiceHandler(watched{}))
	works := serve(t, mux)
	open := func() *Client {
		var cut *httptest.Server
		cut = serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cut.CloseClientConnections() }))
		list, err := ParseGateways("test", cut.URL+","+works.URL)
		if err != nil {
			t.Fatal(err)
		}
		a := New(list, Options{})
		t.Cleanup(a.Close)
		return a
	}
	messages := make(chan *v1.WatchRunResponse, 1)
	if err := open().Watch(t.Context(), "r-1", messages, func() { t.Error("the watcher has lost a gateway that had not answered") }); err != nil || (<-messages).GetRun().GetId() != "r-1" {
		t.Errorf("watch: %v", err)
	}
	a := open()
	if _, err := a.Runs.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: "r-1"})); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a call that reads: %v", err)
	}
	a = open()
	if _, err := a.Runs.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{})); connect.CodeOf(err) == connect.CodeUnimplemented || !isCut(err) {
		t.Errorf("a call that writes: %v", err)
	}
}
