package store

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// maxBatches and maxBatchesBytes bound the decoded batch records that are kept in memory.
	maxBatches      = 16
	maxBatchesBytes = 32 << 20
)

// batches caches recently read batch records: a caller that reads the instances of a task one after another finds many of
// them in one record. The zero value is ready. It is safe for concurrent use.
type batches struct {
	mu    sync.Mutex
	kept  []*keptBatch // the most recently used one is last
	bytes int
}

type keptBatch struct {
	key     string
	record  *historyv1.ExecuteResponse // immutable
	members map[int32]*historyv1.MemberResult
	size    int
}

func newKeptBatch(key string, record *historyv1.ExecuteResponse) *keptBatch {
	b := &keptBatch{key: key, record: record, members: make(map[int32]*historyv1.MemberResult, len(record.GetBatch())), size: proto.Size(record)}
	for _, m := range record.GetBatch() {
		if b.members[m.GetIndex()] == nil {
			b.members[m.GetIndex()] = m
		}
	}
	return b
}

// answer returns a copy of an instance's answer in the record, or nil if the record has none. An answer never changes,
// but the record of a running batch still gains others.
func (b *keptBatch) answer(index int32) *historyv1.ExecuteResponse {
	m := b.members[index]
	if m == nil {
		return nil
	}
	return MemberAnswer(b.record, proto.CloneOf(m))
}

// find returns the cached record under a key, or nil.
func (s *batches) find(key string) *keptBatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.kept, func(b *keptBatch) bool { return b.key == key })
	if i < 0 {
		return nil
	}
	b := s.kept[i]
	s.kept = append(slices.Delete(s.kept, i, i+1), b)
	return b
}

// keep caches a record in place of an older one under its key.
func (s *batches) keep(b *keptBatch) {
	if b.size > maxBatchesBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.kept, func(k *keptBatch) bool { return k.key == b.key }); i >= 0 {
		s.drop(i)
	}
	s.kept = append(s.kept, b)
	for s.bytes += b.size; s.bytes > maxBatchesBytes || len(s.kept) > maxBatches; {
		s.drop(0)
	}
}

func (s *batches) drop(i int) {
	s.bytes -= s.kept[i].size
	s.kept = slices.Delete(s.kept, i, i+1)
}
