package audit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxWait is how long a call waits for its entry to be stored.
	maxWait = 2 * time.Second
	// maxPending is how many entries wait for the store, and maxPart how many one value has.
	maxPending, maxPart = 10_000, 1000
	// storeTimeout bounds one try to store entries; longestPause is the longest wait before another one.
	storeTimeout, longestPause = 5 * time.Second, 10 * time.Second
	// closeTimeout is how long Close waits for the store.
	closeTimeout = 5 * time.Second
)

// Recorder stores entries. It is safe for concurrent use. Close ends it.
type Recorder struct {
	store *store.Store
	now   func() time.Time
	log   *slog.Logger
	// gateway distinguishes the values of this recorder from those of others.
	gateway string
	floods  floods

	storing sync.Mutex // held while entries are being stored

	mu      sync.Mutex
	pending []*v1.AuditEntry
	stored  *sync.Cond    // there are fewer pending entries
	oldest  int64         // number of the first pending entry
	next    int64         // number of the next entry
	dropped int           // since the store was there
	news    chan struct{} // has a token if there may be pending entries
	closing chan struct{}
	closed  chan struct{}
	once    sync.Once
}

// NewRecorder returns a recorder that stores entries in a store.
func NewRecorder(s *store.Store, now func() time.Time, log *slog.Logger) *Recorder {
	name := make([]byte, 4)
	_, _ = rand.Read(name) // never fails
	r := &Recorder{
		store: s, now: now, log: log, gateway: hex.EncodeToString(name),
		news: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{}),
	}
	r.stored = sync.NewCond(&r.mu)
	go r.write()
	return r
}

// Close stores what waits, for some seconds at most. A second Close does nothing.
func (r *Recorder) Close() {
	r.once.Do(func() { close(r.closing) })
	<-r.closed
}

// Record adds an entry and returns once it is stored, or after maxWait: an entry that is late is stored when the store is back.
func (r *Recorder) Record(ctx context.Context, e *v1.AuditEntry) {
	number, ok := r.add(e)
	if !ok {
		return
	}
	select {
	case <-r.closed: // a call that the gateway was answering when it closed
		if err := r.storeSome(context.WithoutCancel(ctx)); err != nil {
			r.log.Error("an entry of the audit is lost, because the store is away", "action", e.GetAction(), "error", err)
		}
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWait)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stored.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.oldest <= number && ctx.Err() == nil {
		r.stored.Wait()
	}
}

// Note adds an entry about a refused call and does not wait. Of many from one address it leaves some out, which the next entry
// counts.
func (r *Recorder) Note(e *v1.AuditEntry) {
	omitted, ok := r.floods.admit(e.GetFrom(), r.now())
	if !ok {
		return
	}
	e.Omitted = omitted
	r.add(e)
}

// add adds an entry and returns its number, or false if there is no room for it.
func (r *Recorder) add(e *v1.AuditEntry) (number int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == maxPending {
		r.dropped++
		return 0, false
	}
	number = r.next
	r.next++
	e.At, e.Id = timestamppb.New(r.now()), fmt.Sprintf("%s-%d", r.gateway, number)
	r.pending = append(r.pending, e)
	select {
	case r.news <- struct{}{}:
	default:
	}
	return number, true
}

// write stores entries until the recorder closes.
func (r *Recorder) write() {
	defer close(r.closed)
	pause := time.Duration(0)
	for {
		select {
		case <-r.news:
		case <-r.closing:
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			for r.storeSome(ctx) == nil && r.hasPending() {
			}
			if r.hasPending() {
				r.log.Error("entries of the audit are lost, because the store is away", "entries", len(r.pending))
			}
			return
		}
		for r.hasPending() {
			err := r.storeSome(context.Background())
			if err == nil {
				pause = 0
				continue
			}
			pause = min(max(2*pause, 100*time.Millisecond), longestPause)
			r.log.Warn("entries of the audit wait for the store", "error", err)
			select {
			case <-time.After(pause):
			case <-r.closing:
				r.wake()
			}
			if r.isClosing() {
				break
			}
		}
	}
}

func (r *Recorder) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *Recorder) isClosing() bool {
	select {
	case <-r.closing:
		return true
	default:
		return false
	}
}

func (r *Recorder) hasPending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending) > 0
}

// storeSome stores the entries that have waited for the longest time, as one value.
func (r *Recorder) storeSome(ctx context.Context) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	r.mu.Lock()
	some, first, dropped := r.pending[:min(len(r.pending), maxPart)], r.oldest, r.dropped
	r.mu.Unlock()
	if len(some) == 0 {
		return nil
	}
	if dropped > 0 {
		r.log.Error("calls have no entry in the audit, because the store was away and too many waited", "calls", dropped)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	key := storekey.Audit(some[0].GetAt().AsTime(), r.gateway, first)
	// Written before with a lost answer, it is the same value.
	if _, err := r.store.PutMessageIfAbsent(ctx, key, &v1.AuditPart{Entries: some}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending, r.oldest, r.dropped = r.pending[len(some):], r.oldest+int64(len(some)), r.dropped-dropped
	r.stored.Broadcast()
	return nil
}
