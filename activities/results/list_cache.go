package results

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// maxLists and maxListBytes bound the stored lists that a node caches.
	maxLists     = 16
	maxListBytes = 64 << 20
)

// ListCache caches the stored lists that a node has read recently: every instance of a fanned-out
// task needs an item of the same list, and the value under a key never changes. The zero value is
// ready to use. ListCache is safe for concurrent use.
type ListCache struct {
	mu    sync.Mutex
	kept  []*keptList // least recently used first
	bytes int
}

type keptList struct {
	key  string
	list *historyv1.ItemList
	size int
}

// Read returns the items under a key. The caller must not modify them.
func (l *ListCache) Read(ctx context.Context, s *store.Store, key string) ([]*structpb.Value, error) {
	list, err := l.read(ctx, s, key)
	return list.GetItems(), err
}

func (l *ListCache) read(ctx context.Context, s *store.Store, key string) (*historyv1.ItemList, error) {
	if list, ok := l.find(key); ok {
		return list, nil
	}
	list, err := s.AwaitItems(ctx, key, store.Arrival)
	if err != nil {
		return nil, err
	}
	l.keep(&keptList{key: key, list: list, size: proto.Size(list)})
	return list, nil
}

func (l *ListCache) find(key string) (*historyv1.ItemList, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, k := range l.kept {
		if k.key == key {
			l.kept = append(slices.Delete(l.kept, i, i+1), k)
			return k.list, true
		}
	}
	return nil, false
}

func (l *ListCache) keep(k *keptList) {
	if k.size > maxListBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(l.kept, func(other *keptList) bool { return other.key == k.key }) {
		return // another caller has read it meanwhile
	}
	l.kept = append(l.kept, k)
	for l.bytes += k.size; l.bytes > maxListBytes || len(l.kept) > maxLists; {
		l.bytes -= l.kept[0].size
		l.kept = slices.Delete(l.kept, 0, 1)
	}
}

// All returns the list that items refers to or contains. The caller must not modify it.
func (l *ListCache) All(ctx context.Context, s *store.Store, items *historyv1.Items) (*historyv1.ItemList, error) {
	if items.GetKey() == "" {
		return &historyv1.ItemList{Items: items.GetList().GetValues(), States: items.GetStates(), Artifacts: items.GetArtifacts()}, nil
	}
	return l.read(ctx, s, items.GetKey())
}

// ListOf returns a stored list as a list value.
func ListOf(list *historyv1.ItemList) *structpb.ListValue {
	return &structpb.ListValue{Values: list.GetItems()}
}
