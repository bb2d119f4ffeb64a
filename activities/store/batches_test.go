package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// counting counts the reads of a backend.
type counting struct {
	backend
	reads int
}

func (c *counting) get(ctx context.Context, key string) ([]byte, error) {
	c.reads++
	return c.backend.get(ctx, key)
}

// The record of a batch is read only once for all its members, and the cache of such records is bounded.
func TestBatchesAreReadOnce(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	reads := &counting{backend: s.backend}
	s.backend = reads
	put := func(key string, size int) {
		record := &historyv1.ExecuteResponse{}
		for i := range int32(100) {
			record.Batch = append(record.Batch, &historyv1.MemberResult{Index: i, Result: &v1.TaskResult{Stdout: strings.Repeat("x", size/100)}})
		}
		if err := s.PutMessage(t.Context(), key, record); err != nil {
			t.Fatal(err)
		}
	}
	key := storekey.Batch("ci-0k", 0, "each[0-99]", 0, 1)
	put(key, 1000)
	for i := range int32(100) {
		r, err := s.GetResult(t.Context(), MemberReference(key, i))
		if err != nil || r.GetResult().GetStdout() == "" {
			t.Fatalf("%d: %v, %v", i, r, err)
		}
		r.Result.Stdout = "" // the answer belongs to the caller
	}
	if r, _ := s.GetResult(t.Context(), MemberReference(key, 7)); r.GetResult().GetStdout() == "" || reads.reads != 1 {
		t.Errorf("%d reads; member 7: %v", reads.reads, r)
	}
	for i := range 8 + maxBatches {
		size := maxBatchesBytes / 6
		if i >= 8 {
			size = 1000
		}
		large := storekey.Batch("ci-0k", 0, fmt.Sprintf("each[%d-%d]", i, i+100), 0, 1)
		put(large, size)
		if _, err := s.GetResult(t.Context(), MemberReference(large, 3)); err != nil {
			t.Fatal(err)
		}
		if n := len(s.batches.kept); n > maxBatches || s.batches.bytes > maxBatchesBytes || n == 0 {
			t.Errorf("%d records of %d bytes are kept", n, s.batches.bytes)
		}
	}
}
