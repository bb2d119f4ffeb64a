package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/edge"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// halfSent is a call on its own connection whose body is never completed.
type halfSent struct {
	net.Conn
	status chan int // 0 if the connection ended without a response
}

// sendHalf announces a body of the given size, sends only the start of it, and keeps the connection open.
func (f *fixture) sendHalf(t *testing.T, procedure string, announced int, body []byte) *halfSent {
	t.Helper()
	conn, err := net.Dial("tcp", f.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	h := &halfSent{Conn: conn, status: make(chan int, 1)}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 256)
		n, _ := io.ReadAtLeast(conn, buffer, len("HTTP/1.1 200"))
		var status int
		_, _ = fmt.Sscanf(string(buffer[:n]), "HTTP/1.1 %d", &status)
		h.status <- status
	}()
	// The gateway may refuse the call before everything is sent.
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/proto\r\nContent-Length: %d\r\n\r\n", procedure, announced)
	_, _ = conn.Write(body)
	return h
}

// isHealthy checks that probes are answered.
func (f *fixture) isHealthy(t *testing.T) {
	t.Helper()
	if status, text := fetch(t, f.server.URL()+"/healthz"); status != http.StatusOK {
		t.Errorf("GET /healthz: %d %s", status, text)
	}
}

func TestHalfSentBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const mib, room, calls = 1 << 20, 4, 40
	f := startConfigured(t, "mem://", Config{Limits: edge.Limits{BodyBytes: room * mib, BodyTime: time.Hour}})
	var open []*halfSent
	for range calls {
		open = append(open, f.sendHalf(t, switchyardv1connect.BlobServicePutBlobProcedure, store.MaxValueBytes, make([]byte, mib)))
	}
	refused := make(chan int, calls)
	for _, h := range open {
		go func() { refused <- <-h.status }()
	}
	for range calls - room {
		select {
		case status := <-refused:
			if status != http.StatusTooManyRequests && status != 0 {
				t.Errorf("a call beyond the bound: %d", status)
			}
		case <-time.After(limit):
			t.Fatal("calls beyond the bound stay open")
		}
	}
	f.isHealthy(t)
	for _, h := range open {
		_ = h.Close()
	}
	eventually(t, "all room is given back", func() bool { return f.bounds.IsFree() })
	blobs := dialService(t, f, switchyardv1connect.NewBlobServiceClient, "")
	do(t, blobs.PutBlob, &v1.PutBlobRequest{Key: storekey.Checkpoint("ci-0k/c", 0, "build", 1), Data: make([]byte, mib)})
}

func TestCompressedBodyCountsWithItsMaximumSize(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{Limits: edge.Limits{BodyBytes: store.MaxValueBytes}})
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte("{}"))
	_ = w.Close()
	for encoding, test := range map[string]struct {
		body   string
		status int
	}{"identity": {"{}", http.StatusOK}, "gzip": {packed.String(), http.StatusTooManyRequests}} {
		got := f.rest(t, "POST", switchyardv1connect.RunServiceListRunsProcedure, test.body, "Content-Type", jsonHeader, "Content-Encoding", encoding)
		if got.status != test.status {
			t.Errorf("%s: %d %s, want %d", encoding, got.status, got.text, test.status)
		}
	}
}

func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{Limits: edge.Limits{BodyTime: time.Hour, Calls: 3, ClientCalls: 2}})
	for range 2 {
		f.sendHalf(t, switchyardv1connect.RunServiceListRunsProcedure, 100, []byte("x"))
	}
	eventually(t, "both calls are open", func() bool {
		return f.bounds.OpenCalls() == 2
	})
	refused(t, "a third call of the client", f.client.ListRuns, &v1.ListRunsRequest{}, connect.CodeResourceExhausted, "close some of them")
	f.isHealthy(t)
}

// TestStreamsAreBounded requests many more streams than a client may have.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	const each, asked = 20, 100
	f := startConfigured(t, "mem://", Config{Limits: edge.Limits{ClientStreams: each}})
	id := f.submit(t, "watched")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var open, refused atomic.Int32
	var all sync.WaitGroup
	for range asked {
		all.Go(func() {
			stream, err := f.client.WatchRun(ctx, connect.NewRequest(&v1.WatchRunRequest{Id: id}))
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Close()
			first := true
			for stream.Receive() {
				if first {
					open.Add(1)
				}
				first = false
			}
			if err := stream.Err(); first && connect.CodeOf(err) == connect.CodeResourceExhausted && strings.Contains(err.Error(), "close some of them") {
				refused.Add(1)
			} else if ctx.Err() == nil {
				t.Errorf("a stream ended with %v", err)
			}
		})
	}
	eventually(t, "each stream is open or refused", func() bool { return open.Load()+refused.Load() == asked })
	if open.Load() != each {
		t.Errorf("%d streams are open, want %d", open.Load(), each)
	}
	f.isHealthy(t)
	cancel()
	all.Wait()
	// After that, the client may open streams again, of each kind.
	eventually(t, "the streams have ended", func() bool { return f.bounds.OpenStreams() == 0 })
	for range each {
		f.openStream(t, "/v1/runs/"+id+"/events")
	}
	_, res := f.openStream(t, "/v1/runs/"+id+"/events")
	wantStatus(t, "one stream of events too many", res, http.StatusTooManyRequests, "resource_exhausted", "20 open streams")
}

func TestMalformedBodyIsInvalidArgument(t *testing.T) {
	t.Parallel()
	f := start(t)
	conn, err := net.Dial("tcp", f.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n",
		switchyardv1connect.RunServiceListRunsProcedure); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	n, err := io.ReadAtLeast(conn, buffer, len("HTTP/1.1 200"))
	if err != nil || !strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 400") {
		t.Errorf("%s, %v", buffer[:n], err)
	}
}
