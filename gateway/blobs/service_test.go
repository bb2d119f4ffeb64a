package blobs

import (
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

// TestNodesRetryWhileTheStoreIsDown checks that a gateway whose own store is down tells nodes to try again instead
// of reporting an error of theirs.
func TestNodesRetryWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := Service{Store: s}
	ctx := auth.With(t.Context(), &auth.Principal{Role: v1.Role_ROLE_ADMIN, Kind: auth.KindNone})
	put := connect.NewRequest(&v1.PutBlobRequest{Key: storekey.Checkpoint("ci-0k/c", 0, "build", 1), Data: []byte("x")})
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutBlob(ctx, put); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("put: %v", err)
	}
	if _, err := b.GetBlob(ctx, connect.NewRequest(&v1.GetBlobRequest{Key: put.Msg.GetKey()})); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("get: %v", err)
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutBlob(ctx, put); err != nil {
		t.Errorf("put when it is back: %v", err)
	}
}
