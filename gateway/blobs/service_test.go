package blobs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// wantCode checks the code of an error. 0 means success.
func wantCode(t *testing.T, what string, err error, code connect.Code) {
	t.Helper()
	if (err == nil) != (code == 0) || err != nil && connect.CodeOf(err) != code {
		t.Errorf("%s: %v, want %v", what, err, code)
	}
}

func TestServiceServesAsAStore(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	s := f.openAs(t, everyone)
	key := storekey.Result("ci-0k/c", 0, "build", 0)
	if _, err := s.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a missing value: %v", err)
	}
	for i, state := range []string{"failed", "completed"} {
		if existed, err := s.PutMessageIfAbsent(t.Context(), key, &historyv1.ExecuteResponse{State: state}); err != nil || existed != (i > 0) {
			t.Errorf("value %d: existed %t, %v", i, existed, err)
		}
	}
	var first historyv1.ExecuteResponse
	if err := s.GetMessage(t.Context(), key, &first); err != nil || first.GetState() != "failed" {
		t.Errorf("the first value is %v, %v", &first, err)
	}
	key = storekey.Checkpoint("ci-0k/c", 0, "build", 1)
	large := bytes.Repeat([]byte("0123456789abcdef"), store.MaxValueBytes/16)
	for _, want := range [][]byte{[]byte("first"), {}, large} {
		if err := s.Put(t.Context(), key, want); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), key)
		stored, storeErr := f.Store.Get(t.Context(), key)
		if err := errors.Join(err, storeErr); err != nil || !bytes.Equal(got, want) || !bytes.Equal(stored, want) {
			t.Errorf("a value of %d bytes comes back as one of %d, and is stored as one of %d, %v", len(want), len(got), len(stored), err)
		}
	}
	if err := s.Probe(t.Context(), store.ProbeRun); err != nil {
		t.Errorf("the store answers, and its probe says %v", err)
	}
}

func TestKeysAreListedInPages(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	var want []string
	for n := range int64(2 * defaultPage) {
		want = append(want, storekey.LogChunk("ci-0k/c", 0, "build", 0, 0, n))
	}
	want = append(want, storekey.LogChunk("ci-0k/c", 0, "build-2", 0, 0, 0))
	for _, key := range append(want, storekey.LogChunk("ci-0k1/c", 0, "build", 0, 0, 0)) {
		if err := f.Store.Put(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	var got []string
	for key, err := range f.openAs(t, everyone).Keys(t.Context(), storekey.RunPrefix("ci-0k")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
}

// TestServiceRefusesOtherKeysAndValues checks that callers reach no key that belongs to no run, and store only what nodes produce.
func TestServiceRefusesOtherKeysAndValues(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	ctx := auth.With(t.Context(), everyone)
	put := func(key string, data []byte, ifAbsent bool) error {
		_, err := f.PutBlob(ctx, connect.NewRequest(&v1.PutBlobRequest{Key: key, Data: data, IfAbsent: ifAbsent}))
		return err
	}
	get := func(key string) error {
		_, err := f.GetBlob(ctx, connect.NewRequest(&v1.GetBlobRequest{Key: key}))
		return err
	}
	for _, key := range []string{
		"x", "runs/", "runs/ci-0k", "runs/../x", "runs/ci-0k/../../x", "/etc/passwd", "runs/ci-0k//x", "file:///etc/passwd", `runs\..\x`,
		"runs/ci-0k/" + strings.Repeat("x", 2000), "",
	} {
		_, list := f.ListBlobs(ctx, connect.NewRequest(&v1.ListBlobsRequest{Prefix: key}))
		for call, err := range map[string]error{"put": put(key, []byte("x"), false), "get": get(key), "list": list} {
			wantCode(t, call+" of "+key, err, connect.CodeInvalidArgument)
		}
	}
	for _, key := range []string{
		storekey.Status("ci-0k/c", 0), storekey.RunState("ci-0k/c", 0, "e", 1), storekey.Events("ci-0k/c", 0, 1), storekey.Purged("ci-0k/c", 0, "build"),
		storekey.Shared("ci-0k/c", 0, "context", 1), storekey.List("ci-0k/c", storekey.Digest(nil)), storekey.Reused("ci-0k/c", storekey.Digest(nil)),
		"runs/..x/results/build.0.0", "runs/ci-0k/junk", "runs/ci-0k/c/results/build.0.0.attrs", "runs/ci-0k/c/results",
	} {
		wantCode(t, key, put(key, nil, false), connect.CodeInvalidArgument)
	}
	for _, key := range []string{storekey.Result("ci-0k/c", 0, "build", 0), storekey.Batch("ci-0k/c", 0, "each[0-3]", 0, 1), storekey.LogChunk("ci-0k/c", 0, "build", 0, 1, 0)} {
		for _, ifAbsent := range []bool{false, true} {
			wantCode(t, "garbage under "+key, put(key, []byte("fff garbage"), ifAbsent), connect.CodeInvalidArgument)
		}
	}
	tooLarge := make([]byte, store.MaxValueBytes+1)
	wantCode(t, "a value that is too large", put(storekey.Checkpoint("ci-0k/c", 0, "build", 1), tooLarge, false), connect.CodeInvalidArgument)
	for key := range f.Store.Keys(t.Context(), "") {
		t.Errorf("the store has a value under %q", key)
	}
	if err := f.Store.Put(t.Context(), storekey.Status("ci-0k/c", 0), tooLarge); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a value that is too large to send", get(storekey.Status("ci-0k/c", 0)), connect.CodeOutOfRange)
}

// TestFinalValuesNeverChange stores values one after the other under the key of a chunk of a log, and under that of a record.
func TestFinalValuesNeverChange(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	s := f.openAs(t, everyone)
	chunk := storekey.LogChunk("ci-0k/c", 0, "build", 0, 1, 0)
	for _, step := range []struct {
		text string
		code connect.Code
	}{{"printed", 0}, {"printed", 0}, {"forged", connect.CodeAlreadyExists}} {
		wantCode(t, step.text, s.Put(t.Context(), chunk, logChunk(t, step.text)), step.code)
	}
	if got, err := f.Store.Get(t.Context(), chunk); err != nil || !bytes.Equal(got, logChunk(t, "printed")) {
		t.Errorf("the chunk is %q, %v", got, err)
	}
	record := storekey.Result("ci-0k/c", 0, "build", 0)
	for _, step := range []struct {
		state string
		code  connect.Code
	}{{"failed", 0}, {"completed", 0}, {"failed", connect.CodeAlreadyExists}} {
		wantCode(t, step.state, s.PutMessage(t.Context(), record, &historyv1.ExecuteResponse{State: step.state}), step.code)
	}
	var kept historyv1.ExecuteResponse
	if err := f.Store.GetMessage(t.Context(), record, &kept); err != nil || kept.GetState() != "completed" {
		t.Errorf("the record is %v, %v", &kept, err)
	}
}

// TestLogQuotaLeavesRoomForResults stores a chunk beyond the log quota of its run, and a result.
func TestLogQuotaLeavesRoomForResults(t *testing.T) {
	t.Parallel()
	f := start(t, "mem://")
	f.Store.LimitLogs(1)
	s := f.openAs(t, everyone)
	if err := s.Put(t.Context(), storekey.LogChunk("ci-0k/c", 0, "build", 0, 1, 0), logChunk(t, "x")); !errors.Is(err, store.ErrLogQuota) {
		t.Errorf("a chunk: %v", err)
	}
	if err := s.PutMessage(t.Context(), storekey.Result("ci-0k/c", 0, "build", 0), &historyv1.ExecuteResponse{State: "completed"}); err != nil {
		t.Errorf("a result: %v", err)
	}
}

// TestMissingValueIsNotFound reads keys of a folder that are no files. The error does not name the folder.
func TestMissingValueIsNotFound(t *testing.T) {
	t.Parallel()
	f := start(t, filepath.Join(t.TempDir(), "store"))
	key := storekey.LogChunk("ci-0k/c", 0, "build", 0, 1, 0)
	if err := f.Store.Put(t.Context(), key, logChunk(t, "printed")); err != nil {
		t.Fatal(err)
	}
	s := f.openAs(t, everyone)
	for _, key := range []string{"runs/ci-0k/c/logs", "runs/ci-0k/c/logs/build", key + ".attrs", key + "/below"} {
		if _, err := s.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) || strings.Contains(err.Error(), f.Store.Location()) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestNodesRetryWhileTheStoreIsDown checks that a gateway whose own store is down tells nodes to try again instead
// of reporting an error of theirs.
func TestNodesRetryWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	f := start(t, dir)
	ctx := auth.With(t.Context(), everyone)
	put := connect.NewRequest(&v1.PutBlobRequest{Key: storekey.Checkpoint("ci-0k/c", 0, "build", 1), Data: []byte("x")})
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	_, err := f.PutBlob(ctx, put)
	wantCode(t, "put", err, connect.CodeUnavailable)
	_, err = f.GetBlob(ctx, connect.NewRequest(&v1.GetBlobRequest{Key: put.Msg.GetKey()}))
	wantCode(t, "get", err, connect.CodeUnavailable)
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	_, err = f.PutBlob(ctx, put)
	wantCode(t, "put when it is back", err, 0)
}

// TestIdentityTellsWhetherTheStoreAnswers takes the folder of a store away after the gateway has read the identity of the store.
func TestIdentityTellsWhetherTheStoreAnswers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	f := start(t, dir)
	s := f.openAs(t, node("a"))
	if _, err := s.Identity(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Identify(t.Context())
	wantCode(t, "the identity of a store that is away", err, connect.CodeUnavailable)
}
