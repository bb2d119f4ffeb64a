package store

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxBatches and maxBatchesBytes bound the records of batches that are kept in memory, decoded.
	maxBatches      = 16
	maxBatchesBytes = 32 << 20
)

// batches are the records of batches that were read of late: whoever reads the
// instances of a task one after the other finds many of them in one record. The zero
// value is ready. It is safe for concurrent use.
type batches struct {
	mu    sync.Mutex
	kept  []*keptBatch // the one that was used last is the last
	bytes int
}

type keptBatch struct {
	key     string
	record  *v1.ExecuteResponse // not changed any more
	members map[int32]*v1.MemberResult
	size    int
}

func newKeptBatch(key string, record *v1.ExecuteResponse) *keptBatch {
	b := &keptBatch{key: key, record: record, members: make(map[int32]*v1.MemberResult, len(record.GetBatch())), size: proto.Size(record)}
	for _, m := range record.GetBatch() {
		if b.members[m.GetIndex()] == nil {
			b.members[m.GetIndex()] = m
		}
	}
	return b
}

// answer is what the record says of an instance, for the caller to keep; nil: nothing. What has ended once stays as
// it is, but the record of a batch that runs has yet to receive others.
func (b *keptBatch) answer(index int32) *v1.ExecuteResponse {
	m := b.members[index]
	if m == nil {
		return nil
	}
	return MemberAnswer(b.record, proto.CloneOf(m))
}

// find returns the record under a key; nil: it is not kept.
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

// keep puts a record in the place of the one under its key, if there is one.
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
