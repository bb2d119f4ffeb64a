package model

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/dev/scriptedmodel"
)

// serveSlowEnds serves a model and counts its connections. It calls end before each response ends.
func serveSlowEnds(t *testing.T, end func(*http.Request)) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	model := scriptedmodel.New(scriptedmodel.Script{Rules: []scriptedmodel.Rule{{Reply: scriptedmodel.Reply{Text: "It rains in Oslo, as it does."}}}})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		model.ServeHTTP(w, r)
		end(r)
	}))
	connections := &atomic.Int32{}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, connections
}

func TestRepliesShareAConnectionDespiteLateResponseEnds(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		server, connections := serveSlowEnds(t, func(*http.Request) { time.Sleep(time.Millisecond) })
		c := ask(t, provider, server, nil)
		// On a busy machine, most responses may end too late to reuse their connection.
		for replies, end := int32(0), time.Now().Add(patience); connections.Load() >= replies; {
			if time.Now().After(end) {
				t.Fatalf("%d replies took %d connections", replies, connections.Load())
			}
			if _, err := c.Reply(bounded(t), says("weather?"), nil); err != nil {
				t.Fatal(err)
			}
			replies++
		}
	})
}

func TestOpenResponseDoesNotDelayTheReply(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		server, _ := serveSlowEnds(t, func(r *http.Request) { <-r.Context().Done() })
		reply, err := ask(t, provider, server, nil).Reply(bounded(t), says("weather?"), nil)
		if err != nil || len(reply.Message.Parts) != 1 {
			t.Errorf("reply %+v, %v", reply, err)
		}
	})
}
