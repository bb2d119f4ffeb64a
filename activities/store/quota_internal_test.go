package store

import (
	"container/list"
	"errors"
	"testing"

	"gocloud.dev/blob/memblob"

	"switchyard/activities/store/storekey"
)

// Writes in progress count, even if the logs are listed meanwhile.
func TestQuotaCountsWhatIsBeingStored(t *testing.T) {
	t.Parallel()
	q := &quota{
		sizer: &bucket{Bucket: memblob.OpenBucket(nil), url: "mem://"}, limit: 64 << 10, byHome: map[string]*list.Element{},
	}
	defer q.close()
	reserve := func(n int64) (func(bool), error) {
		return q.reserve(t.Context(), storekey.LogChunk("r-1", 0, "t", 0, 1, n), 15<<10)
	}
	var settle func(stored bool)
	for n := range int64(4) {
		var err error
		if settle, err = reserve(n); err != nil {
			t.Fatalf("chunk %d: %v", n, err)
		}
	}
	if _, err := reserve(4); !errors.Is(err, ErrLogQuota) {
		t.Errorf("a chunk too many: %v", err)
	}
	settle(false)
	if _, err := reserve(5); err != nil {
		t.Errorf("after one that was not stored: %v", err)
	}
}
