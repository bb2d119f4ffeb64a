package results

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store/storetest"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// TestListsAreBounded checks that the cache is bounded and keeps the most recently used list.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, t.TempDir())
	var l ListCache
	key := func(i int) string { return fmt.Sprintf("runs/r-1/items/a.%d", i) }
	put := func(i int, text string) {
		t.Helper()
		if err := s.PutMessage(t.Context(), key(i), &historyv1.ItemList{Items: []*structpb.Value{structpb.NewStringValue(text)}}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(i int, want string) {
		t.Helper()
		items, err := l.Read(t.Context(), s, key(i))
		if err != nil || len(items) != 1 || items[0].GetStringValue() != want {
			t.Fatalf("list %d: %d items, error %v", i, len(items), err)
		}
	}
	for i := range 2 * maxLists {
		put(i, fmt.Sprint(i))
		read(i, fmt.Sprint(i))
		read(0, "0")
	}
	if len(l.kept) != maxLists {
		t.Errorf("%d are kept, want %d", len(l.kept), maxLists)
	}
	put(0, "changed")
	read(0, "0") // from the cache
	put(1, "read again")
	read(1, "read again")
	for i := 100; i < 110; i++ { // more than the cache holds
		put(i, strings.Repeat("x", maxListBytes/8))
		read(i, strings.Repeat("x", maxListBytes/8))
	}
	size := 0
	for _, k := range l.kept {
		size += k.size
	}
	if size != l.bytes || size > maxListBytes {
		t.Errorf("%d bytes are kept, and %d counted", size, l.bytes)
	}
}
