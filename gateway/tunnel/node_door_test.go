package tunnel

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	v1 "switchyard/proto/switchyard/v1"
)

// TestLocationIsThatOfTheNewestLink connects a node again while the loss of its link is being handled. The loss must not remove
// the location of the new link.
func TestLocationIsThatOfTheNewestLink(t *testing.T) {
	t.Parallel()
	kept := storetest.Open(t, "file://"+t.TempDir())
	h := New(Config{Store: kept, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	const node = "n1"
	for range 500 {
		older, newer := &link{node: node, id: "older"}, &link{node: node, id: "newer"}
		h.add(older)
		h.storeLocation(t.Context(), older)
		var work sync.WaitGroup
		work.Go(func() { h.remove(older) })
		work.Go(func() {
			h.mu.Lock() // add would close the session of the older link
			h.links[node] = newer
			h.mu.Unlock()
			h.storeLocation(context.WithoutCancel(t.Context()), newer)
		})
		work.Wait()
		at := &v1.LinkLocation{}
		if err := kept.GetMessage(t.Context(), storekey.Link(node), at); err != nil || at.GetLink() != newer.id {
			t.Fatalf("the location is %v, %v", at, err)
		}
		delete(h.links, node)
	}
}
