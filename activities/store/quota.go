package store

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"switchyard/activities/store/storekey"
)

// ErrLogQuota is in the chain of the error of a Put of a chunk of a log whose run has used up its quota of logs.
var ErrLogQuota = errors.New("the logs of the run have reached their quota")

const (
	// noticeShare of a quota is what notices of at most MaxNoticeBytes may take beyond it: 5%.
	noticeShare = 20
	// recountShare of a quota is what a process stores of a run before it lists the logs again, which other processes
	// write as well: 1/16.
	recountShare = 16
	// maxQuotaRuns bounds the runs whose logs are counted. One that is dropped is counted again from its files.
	maxQuotaRuns = 1024
)

// LimitLogs bounds the logs of each run to so many bytes, or to any number if it is 0. Several processes that write to
// one bucket or folder may together exceed the bound by the share that each stores between two counts. A gateway applies
// its own bound. LimitLogs is called before the first use of the Store, and before WithSpool.
func (s *Store) LimitLogs(bytes int64) {
	if b, ok := s.backend.(sizer); ok && bytes > 0 {
		s.backend = &quota{sizer: b, limit: bytes, byHome: map[string]*list.Element{}}
	}
}

// sizer is a backend that knows what its values take.
type sizer interface {
	backend
	// size returns the bytes of the values whose keys start with a prefix that ends with a slash. It costs a look at each.
	size(ctx context.Context, prefix string) (int64, error)
}

var _, _ sizer = floored{}, (*bucket)(nil)

// quota is a backend that takes no more chunks of logs of a run than limit bytes.
type quota struct {
	sizer
	limit int64

	mu     sync.Mutex
	byHome map[string]*list.Element
	recent list.List // of *logUsage, the newest first
}

// logUsage is what the logs of a run take.
type logUsage struct {
	home string

	mu      sync.Mutex
	counted bool
	bytes   int64
	// added is what this process has stored since the count, and pending what of bytes it is just storing.
	added, pending int64
}

func (q *quota) put(ctx context.Context, key string, value []byte) error {
	settle, err := q.reserve(ctx, key, len(value))
	if err != nil {
		return err
	}
	err = q.sizer.put(ctx, key, value)
	settle(err == nil)
	return err
}

func (q *quota) putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	settle, err := q.reserve(ctx, key, len(value))
	if err != nil {
		// A node that has not received its success stores the same chunk again.
		if _, missing := q.get(ctx, key); missing == nil {
			return true, nil
		}
		return false, err
	}
	existed, err = q.sizer.putIfAbsent(ctx, key, value)
	settle(!existed && err == nil)
	return existed, err
}

func (q *quota) deleteRun(ctx context.Context, run string) error {
	q.forget(run)
	return q.sizer.deleteRun(ctx, run)
}

// reserve adds a value to what its run has used, or returns ErrLogQuota. The caller calls settle when the value was
// stored, or was not, which takes it back. What is no chunk of a log needs no room.
func (q *quota) reserve(ctx context.Context, key string, size int) (settle func(stored bool), err error) {
	of, _, isLog := storekey.ParseLogChunk(key)
	if !isLog {
		return func(bool) {}, nil
	}
	u := q.usage(of.Home)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.counted || u.added >= q.limit/recountShare {
		// A count that fails, because a bucket takes too long for one, stops no log.
		if bytes, err := q.size(ctx, storekey.RunPrefix(of.Home)+"logs/"); err == nil {
			if u.pending > 0 { // of which the list may lack any part
				bytes = max(bytes, u.bytes)
			}
			u.bytes = bytes
		}
		u.added, u.counted = 0, true
	}
	limit := q.limit
	if size <= MaxNoticeBytes {
		limit += q.limit / noticeShare
	}
	if u.bytes+int64(size) > limit {
		return nil, fmt.Errorf("%w: %d bytes", ErrLogQuota, q.limit)
	}
	u.add(int64(size))
	u.pending += int64(size)
	return func(stored bool) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.pending -= int64(size)
		if !stored {
			u.add(-int64(size))
		}
	}, nil
}

// add counts bytes. The caller holds mu.
func (u *logUsage) add(bytes int64) {
	u.bytes, u.added = max(u.bytes+bytes, 0), max(u.added+bytes, 0)
}

// usage returns the usage of a run.
func (q *quota) usage(home string) *logUsage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.byHome[home]; at != nil {
		q.recent.MoveToFront(at)
		return at.Value.(*logUsage)
	}
	if q.recent.Len() >= maxQuotaRuns {
		q.drop(q.recent.Back())
	}
	u := &logUsage{home: home}
	q.byHome[home] = q.recent.PushFront(u)
	return u
}

// forget drops the usages of a run: that of each of its chains of executions.
func (q *quota) forget(run string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for home, at := range q.byHome {
		if home == run || strings.HasPrefix(home, run+"/") {
			q.drop(at)
		}
	}
}

// drop drops a usage. The caller holds mu.
func (q *quota) drop(at *list.Element) { delete(q.byHome, q.recent.Remove(at).(*logUsage).home) }
