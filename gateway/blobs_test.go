package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protodelim"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// openRemote opens the gateway as a store.
func (f *fixture) openRemote(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), f.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestGatewayServesAsAStore(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.openRemote(t)
	if s.Location() != f.server.URL() {
		t.Errorf("location %q", s.Location())
	}
	key := storekey.Result("ci-0k/c", 0, "build", 0)
	if _, err := s.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a missing value: %v", err)
	}
	for i, state := range []string{"failed", "completed"} {
		if existed, err := s.PutMessageIfAbsent(t.Context(), key, &v1.ExecuteResponse{State: state}); err != nil || existed != (i > 0) {
			t.Errorf("value %d: existed %t, %v", i, existed, err)
		}
	}
	var first v1.ExecuteResponse
	if err := s.GetMessage(t.Context(), key, &first); err != nil || first.GetState() != "failed" {
		t.Errorf("the first value is %v, %v", &first, err)
	}
	key = storekey.Checkpoint("ci-0k/c", 0, "build", 1)
	large := bytes.Repeat([]byte("0123456789abcdef"), store.MaxValueBytes/16)
	for _, want := range [][]byte{[]byte("first"), {}, large} {
		if err := s.Put(t.Context(), key, want); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), key); err != nil || !bytes.Equal(got, want) {
			t.Errorf("a value of %d bytes comes back as one of %d, %v", len(want), len(got), err)
		}
		// The value is under the same key in the gateway's store.
		if got, err := f.config.Store.Get(t.Context(), key); err != nil || !bytes.Equal(got, want) {
			t.Errorf("a value of %d bytes is one of %d in the gateway's store, %v", len(want), len(got), err)
		}
	}
	if err := s.Put(t.Context(), key, append(large, 'x')); err == nil || !strings.Contains(err.Error(), "12 MiB") {
		t.Errorf("a value that is too large: %v", err)
	}

	if err := s.Probe(t.Context(), store.ProbeRun); err != nil {
		t.Errorf("the store answers, and its probe says %v", err)
	}
	if err := s.DeleteRun(t.Context(), "ci-0k"); err == nil {
		t.Error("a client may delete a run")
	}
	for _, err := range s.Runs(t.Context()) {
		if err == nil {
			t.Error("a client may list the runs of the store")
		}
	}
	if _, err := s.Newest(t.Context(), "ci-0k"); err == nil {
		t.Error("a client is told of times that the gateway does not send")
	}
}

func TestBlobsAreListedInPages(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.openRemote(t)
	var want []string
	for n := range int64(2500) {
		want = append(want, storekey.LogChunk("ci-0k/c", 0, "build", 0, 0, n))
	}
	want = append(want, storekey.LogChunk("ci-0k/c", 0, "build-2", 0, 0, 0))
	other := storekey.LogChunk("ci-0k1/c", 0, "build", 0, 0, 0)
	for _, key := range append(want, other) {
		if err := f.config.Store.Put(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	var got []string
	for key, err := range s.Keys(t.Context(), storekey.RunPrefix("ci-0k")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	for range s.Keys(t.Context(), storekey.RunPrefix("ci-0k")) {
		break
	}
}

func TestPutBlobRefusesOtherKeys(t *testing.T) {
	t.Parallel()
	f := start(t)
	client := switchyardv1connect.NewBlobServiceClient(http.DefaultClient, f.server.URL())
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, key := range []string{
		"x", "runs/", "runs/ci-0k", "runs/../x", "runs/ci-0k/../../x", "/etc/passwd", "runs/ci-0k//x",
		"file:///etc/passwd", `runs\..\x`, "runs/ci-0k/" + strings.Repeat("x", 2000), "",
	} {
		_, put := client.PutBlob(t.Context(), connect.NewRequest(&v1.PutBlobRequest{Key: key, Data: []byte("x")}))
		_, get := client.GetBlob(t.Context(), connect.NewRequest(&v1.GetBlobRequest{Key: key}))
		_, list := client.ListBlobs(t.Context(), connect.NewRequest(&v1.ListBlobsRequest{Prefix: key}))
		for call, err := range map[string]error{"put": put, "get": get, "list": list} {
			if connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("%s of %.40q: %v", call, key, err)
			}
		}
	}
	for key := range f.config.Store.Keys(t.Context(), "") {
		t.Errorf("the store has a value under %q", key)
	}
	tooLarge := &v1.PutBlobRequest{Key: storekey.Checkpoint("ci-0k/c", 0, "build", 1), Data: make([]byte, store.MaxValueBytes+1)}
	if _, err := client.PutBlob(t.Context(), connect.NewRequest(tooLarge)); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a value that is too large: %v", err)
	}
	if err := f.config.Store.Put(t.Context(), storekey.Status("ci-0k/c", 0), tooLarge.GetData()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetBlob(t.Context(), connect.NewRequest(&v1.GetBlobRequest{Key: storekey.Status("ci-0k/c", 0)})); connect.CodeOf(err) != connect.CodeOutOfRange {
		t.Errorf("a value that is too large to send: %v", err)
	}
}

func TestPutBlobAcceptsOnlyValuesOfNodes(t *testing.T) {
	t.Parallel()
	f := start(t)
	client := switchyardv1connect.NewBlobServiceClient(http.DefaultClient, f.server.URL())
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, key := range []string{
		storekey.Status("ci-0k/c", 0), storekey.RunState("ci-0k/c", 0, "e", 1), storekey.Events("ci-0k/c", 0, 1), storekey.Purged("ci-0k/c", 0, "build"),
		storekey.Shared("ci-0k/c", 0, "context", 1), storekey.List("ci-0k/c", storekey.Digest(nil)), storekey.Reused("ci-0k/c", storekey.Digest(nil)),
		"runs/..x/results/build.0.0", "runs/ci-0k/junk", "runs/ci-0k/c/results/build.0.0.attrs", "runs/ci-0k/c/results",
	} {
		_, err := client.PutBlob(t.Context(), connect.NewRequest(&v1.PutBlobRequest{Key: key}))
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{storekey.Result("ci-0k/c", 0, "build", 0), storekey.Batch("ci-0k/c", 0, "each[0-3]", 0, 1), storekey.LogChunk("ci-0k/c", 0, "build", 0, 1, 0)} {
		for _, ifAbsent := range []bool{false, true} {
			_, err := client.PutBlob(t.Context(), connect.NewRequest(&v1.PutBlobRequest{Key: key, Data: []byte("fff garbage"), IfAbsent: ifAbsent}))
			if connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("garbage under %s: %v", key, err)
			}
		}
	}
	for key := range f.config.Store.Keys(t.Context(), "") {
		t.Errorf("the store has a value under %q", key)
	}
}

func TestChunkOfALogNeverChanges(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.openRemote(t)
	key := storekey.LogChunk("ci-0k/c", 0, "build", 0, 1, 0)
	for i, text := range []string{"printed", "printed", "forged"} {
		err := s.Put(t.Context(), key, logChunk(t, text))
		if i < 2 && err != nil || i == 2 && connect.CodeOf(err) != connect.CodeAlreadyExists {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got, err := f.config.Store.Get(t.Context(), key); err != nil || !bytes.Equal(got, logChunk(t, "printed")) {
		t.Errorf("the chunk is %q, %v", got, err)
	}
}

func TestRecordOfACompletedAttemptNeverChanges(t *testing.T) {
	t.Parallel()
	f := start(t)
	s := f.openRemote(t)
	key := storekey.Result("ci-0k/c", 0, "build", 0)
	for _, step := range []struct {
		state string
		want  connect.Code
	}{{"failed", 0}, {"completed", 0}, {"failed", connect.CodeAlreadyExists}} {
		err := s.PutMessage(t.Context(), key, &v1.ExecuteResponse{State: step.state})
		if step.want == 0 && err != nil || step.want != 0 && connect.CodeOf(err) != step.want {
			t.Errorf("%s: %v", step.state, err)
		}
	}
	var kept v1.ExecuteResponse
	if err := f.config.Store.GetMessage(t.Context(), key, &kept); err != nil || kept.GetState() != "completed" {
		t.Errorf("the record is %v, %v", &kept, err)
	}
}

func TestMissingBlobIsNotFound(t *testing.T) {
	t.Parallel()
	f := startIn(t, filepath.Join(t.TempDir(), "store"))
	key := storekey.LogChunk("ci-0k/c", 0, "build", 0, 1, 0)
	if err := f.config.Store.Put(t.Context(), key, logChunk(t, "printed")); err != nil {
		t.Fatal(err)
	}
	client := switchyardv1connect.NewBlobServiceClient(http.DefaultClient, f.server.URL())
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, key := range []string{"runs/ci-0k/c/logs", "runs/ci-0k/c/logs/build", key + ".attrs", key + "/below"} {
		_, err := client.GetBlob(t.Context(), connect.NewRequest(&v1.GetBlobRequest{Key: key}))
		if connect.CodeOf(err) != connect.CodeNotFound || strings.Contains(err.Error(), f.config.Store.Location()) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// logChunk returns a log chunk with one entry.
func logChunk(t *testing.T, text string) []byte {
	t.Helper()
	var chunk bytes.Buffer
	if _, err := protodelim.MarshalTo(&chunk, &v1.LogEntry{Stream: logs.Stdout, Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	return chunk.Bytes()
}

// relay is an address that stays up while the gateway behind it is replaced.
type relay struct {
	net.Listener
	mu    sync.Mutex
	to    string // empty while there is no gateway
	conns []net.Conn
	all   sync.WaitGroup
}

func startRelay(t *testing.T) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener}
	r.all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.all.Go(func() { r.forward(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.point("")
		r.all.Wait()
	})
	return r
}

func (r *relay) forward(client net.Conn) {
	defer client.Close()
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	if to == "" {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	r.conns = append(r.conns, client, server)
	gone := r.to != to
	r.mu.Unlock()
	if gone {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
	_, _ = io.Copy(server, client)
	_ = server.Close()
	back.Wait()
}

// TestGatewayBoundsTheLogsOfARun checks that a node may not store a chunk beyond the log quota of the run,
// but may still store results.
func TestGatewayBoundsTheLogsOfARun(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.config.Store.LimitLogs(1)
	spooled, err := f.openRemote(t).WithSpool(t.Context(), store.SpoolOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer spooled.Close()
	for name, s := range map[string]*store.Store{"waiting": f.openRemote(t), "spooling": spooled} {
		var err error
		// On a busy machine, a put may take so long that it counts the gateway as away and spools its value.
		for deadline := time.Now().Add(limit); err == nil && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			err = s.Put(t.Context(), storekey.LogChunk("ci-0k/c", 0, name, 0, 1, 0), logChunk(t, "x"))
		}
		if !errors.Is(err, store.ErrLogQuota) {
			t.Errorf("%s: a chunk: %v", name, err)
		}
		if err := s.PutMessage(t.Context(), storekey.Result("ci-0k/c", 0, name, 0), &v1.ExecuteResponse{State: "completed"}); err != nil {
			t.Errorf("%s: a result: %v", name, err)
		}
	}
}

// point closes all connections and forwards new ones to another address.
func (r *relay) point(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// TestSpoolLosesNothingOverAGatewayRestart writes while one gateway stops and another starts, and checks that
// nothing is lost.
func TestSpoolLosesNothingOverAGatewayRestart(t *testing.T) {
	t.Parallel()
	f := start(t)
	front := startRelay(t)
	front.point(f.server.Address())
	upstream, err := store.Open(t.Context(), "http://"+front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	s, err := upstream.WithSpool(t.Context(), store.SpoolOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	const writers, values = 8, 60
	value := func(w int, n int64) []byte { return logChunk(t, fmt.Sprint(w, " ", n)) }
	reached := make(chan struct{}, writers)
	resume := make(chan struct{})
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range int64(values) {
				switch n {
				case values / 3:
					reached <- struct{}{}
				case 2 * values / 3:
					reached <- struct{}{}
					<-resume
				}
				if err := s.Put(t.Context(), storekey.LogChunk("ci-0k/c", 0, fmt.Sprint("task-", w), 0, 0, n), value(w, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range writers {
		<-reached
	}
	front.point("")
	if err := f.server.Close(); err != nil {
		t.Error(err)
	}
	for range writers {
		<-reached
	}
	// The gateway is down, but the newest value can be read from the spool.
	last := storekey.LogChunk("ci-0k/c", 0, "task-0", 0, 0, 2*values/3-1)
	if err := s.Put(t.Context(), last, value(0, 2*values/3-1)); err != nil {
		t.Error(err)
	}
	if got, err := s.Get(t.Context(), last); err != nil || !bytes.Equal(got, value(0, 2*values/3-1)) {
		t.Errorf("the newest value is %q, %v", got, err)
	}

	again, err := New(Config{Client: temporalClient, Store: f.config.Store})
	if err != nil {
		t.Fatal(err)
	}
	server, err := again.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	front.point(server.Address())
	close(resume)
	all.Wait()
	for w := range writers {
		for n := range int64(values) {
			key := storekey.LogChunk("ci-0k/c", 0, fmt.Sprint("task-", w), 0, 0, n)
			for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
				got, err := f.config.Store.Get(t.Context(), key)
				if err == nil && bytes.Equal(got, value(w, n)) {
					break
				}
				if err == nil || time.Now().After(deadline) {
					t.Fatalf("%s is %q, %v", key, got, err)
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
