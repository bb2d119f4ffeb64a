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

// ErrLogQuota is in the chain of the error of a Put of a log chunk if the run has used up its log quota.
var ErrLogQuota = errors.New("the logs of the run have reached their quota")

const (
	// noticeShare is the fraction of a quota that notices of at most MaxNoticeBytes may use beyond it: 1/20, which is 5%.
	noticeShare = 20
	// recountShare is the fraction of a quota that a process stores of a run before it lists the run's logs again,
	// because other processes write them, too: 1/16.
	recountShare = 16
	// maxQuotaRuns bounds the runs whose usage is kept in memory. The usage of a dropped run is counted again from its
	// files.
	maxQuotaRuns = 1024
)

// LimitLogs bounds the logs of each run, in bytes. 0 means no limit. Several processes that write to one bucket or folder
// may together exceed the limit by what each stores between two counts. A gateway applies its own limit instead.
// LimitLogs must be called before the first use of the Store and before WithSpool.
func (s *Store) LimitLogs(bytes int64) {
	if b, ok := s.backend.(sizer); ok && bytes > 0 {
		s.backend = &quota{sizer: b, limit: bytes, byHome: map[string]*list.Element{}}
	}
}

// sizer is a backend that can measure its values.
type sizer interface {
	backend
	// size returns the total bytes of the values whose keys start with a prefix. The prefix ends with a slash. It costs a
	// look at each value.
	size(ctx context.Context, prefix string) (int64, error)
}

var _, _ sizer = floored{}, (*bucket)(nil)

// quota is a backend that refuses log chunks beyond limit bytes per run.
type quota struct {
	sizer
	limit int64

	mu     sync.Mutex
	byHome map[string]*list.Element
	recent list.List // of *logUsage, the most recently used first
}

// logUsage is the size of a run's logs.
type logUsage struct {
	home string

	mu      sync.Mutex
	counted bool
	bytes   int64
	// added is what this process has stored since the last count, and pending the part of bytes whose writes are in
	// progress.
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
		// A node that has not received the success of its write stores the same chunk again.
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

// reserve adds a value to the usage of its run, or returns ErrLogQuota. The caller must call settle with whether the
// value was stored; if not, settle takes the reservation back. Values other than log chunks need no reservation.
func (q *quota) reserve(ctx context.Context, key string, size int) (settle func(stored bool), err error) {
	of, _, isLog := storekey.ParseLogChunk(key)
	if !isLog {
		return func(bool) {}, nil
	}
	u := q.usage(of.Home)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.counted || u.added >= q.limit/recountShare {
		// A failed count, for example because a bucket takes too long, must not stop a log.
		if bytes, err := q.size(ctx, storekey.RunPrefix(of.Home)+"logs/"); err == nil {
			if u.pending > 0 { // the list may lack any part of it
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

// add adds bytes to the usage. The caller holds mu.
func (u *logUsage) add(bytes int64) {
	u.bytes, u.added = max(u.bytes+bytes, 0), max(u.added+bytes, 0)
}

// usage returns the usage of a run, and creates it if necessary.
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

// forget drops the usages of all chains of a run.
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
