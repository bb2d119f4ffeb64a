package store

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// nearlyFull is a gateway without space for logs that can also be away.
type nearlyFull struct {
	switchyardv1connect.UnimplementedBlobServiceHandler
	away    atomic.Bool
	results atomic.Int32
}

func (g *nearlyFull) PutBlob(_ context.Context, req *connect.Request[v1.PutBlobRequest]) (*connect.Response[v1.PutBlobResponse], error) {
	if g.away.Load() {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("away"))
	}
	if _, _, ok := storekey.ParseLogChunk(req.Msg.GetKey()); ok {
		return nil, connect.NewError(connect.CodeFailedPrecondition, ErrLowSpace)
	}
	g.results.Add(1)
	return connect.NewResponse(&v1.PutBlobResponse{}), nil
}

// A nearly full gateway does not count as away: puts do not wait for it, the chunk is not spooled, and a spooled chunk
// does not block other values.
func TestGatewayWithoutSpaceForLogsSaysSo(t *testing.T) {
	mux := http.NewServeMux()
	g := &nearlyFull{}
	mux.Handle(switchyardv1connect.NewBlobServiceHandler(g))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	upstream, err := Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	s, err := upstream.WithSpool(t.Context(), SpoolOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func() error { return s.Put(t.Context(), storekey.LogChunk("r-1", 0, "t", 0, 1, 0), []byte("x")) }
	refused := put()
	// On a busy machine, a put may take so long that it counts the gateway as away.
	for deadline := time.Now().Add(time.Minute); refused == nil && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		refused = put()
	}
	if !errors.Is(refused, ErrLowSpace) {
		t.Errorf("error %v", refused)
	}
	g.away.Store(true)
	for _, key := range []string{storekey.LogChunk("r-1", 0, "t", 0, 1, 1), storekey.Result("r-1", 0, "t", 0)} {
		if err := s.Put(t.Context(), key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	g.away.Store(false)
	for deadline := time.Now().Add(time.Minute); g.results.Load() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the result waits behind the chunk")
		}
	}
}
