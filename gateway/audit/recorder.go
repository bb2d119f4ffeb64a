package audit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxWait is how long a call waits for its entry to be stored.
	maxWait = 2 * time.Second
	// maxPending bounds the entries that wait for the store, maxNotes those among them about refused calls, which anyone can
	// cause, and maxPart the entries in one value.
	maxPending, maxNotes, maxPart = 10_000, 5_000, 1000
	// maxSpan is the longest time between the first entry of a value, whose time is in the key, and the others.
	maxSpan = time.Minute
	// storeTimeout bounds one attempt to store entries. longestPause is the longest pause before another attempt.
	storeTimeout, longestPause = 5 * time.Second, 10 * time.Second
	// closeTimeout is how long Close waits for the store.
	closeTimeout = 5 * time.Second
)

// Values is the part of a store that a Recorder needs.
type Values interface {
	// PutMessageIfAbsent stores a message unless the key exists. A failed call may have stored the message.
	PutMessageIfAbsent(ctx context.Context, key string, m proto.Message) (existed bool, err error)
}

var _ Values = (*store.Store)(nil)

// Recorder stores entries. It is safe for concurrent use. The caller must Close it.
type Recorder struct {
	store Values
	now   func() time.Time
	log   *slog.Logger
	// gateway distinguishes the values of this recorder from those of others.
	gateway string
	floods  floods

	storing sync.Mutex // held while entries are being stored

	mu      sync.Mutex
	pending []*v1.AuditEntry
	stored  *sync.Cond // signals that fewer entries are pending or the writer has ended
	ended   bool       // whether the writer has stopped storing entries
	oldest  int64      // number of the first pending entry
	next    int64      // number of the next entry
	part    int        // number of entries in the value whose storing has failed, or 0
	dropped int        // since the last successful store

	news    chan struct{} // holds a token if there may be pending entries
	closing chan struct{}
	closed  chan struct{}
	once    sync.Once
}

// NewRecorder returns a recorder that stores entries in s. The caller must Close it.
func NewRecorder(s Values, now func() time.Time, log *slog.Logger) *Recorder {
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

// Close stores the pending entries, for at most closeTimeout. A second Close is a no-op.
func (r *Recorder) Close() {
	r.once.Do(func() { close(r.closing) })
	<-r.closed
}

// Record adds an entry and returns once it is stored, or after maxWait. A late entry is stored when the store is back.
func (r *Recorder) Record(ctx context.Context, e *v1.AuditEntry) {
	number, ok := r.add(e, maxPending)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWait)
	defer cancel()
	if r.await(ctx, number) {
		return
	}
	// The gateway closed while it was answering the call.
	if err := r.storeSome(ctx); err != nil {
		r.log.Error("an audit entry is lost because the store is down", "action", e.GetAction(), "error", err)
	}
}

// await waits until an entry is stored or ctx ends. It returns false if the writer has ended without storing the entry.
func (r *Recorder) await(ctx context.Context, number int64) bool {
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stored.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.oldest <= number && ctx.Err() == nil && !r.ended {
		r.stored.Wait()
	}
	return r.oldest > number || !r.ended
}

// Note adds an entry about a refused call without waiting for the store. During a flood it omits entries, and a later entry
// counts them.
func (r *Recorder) Note(e *v1.AuditEntry) {
	e.At = timestamppb.New(r.now())
	if r.floods.admit(e) {
		r.add(e, maxNotes)
	}
}

// add adds an entry and returns its number, or false if most entries are already pending.
func (r *Recorder) add(e *v1.AuditEntry, most int) (number int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) >= most {
		r.dropped++
		return 0, false
	}
	number = r.next
	r.next++
	e.Id = fmt.Sprintf("%s-%d", r.gateway, number)
	if e.At == nil {
		e.At = timestamppb.New(r.now())
	}
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
	sweep := time.NewTicker(floodTime)
	defer sweep.Stop()
	var retry <-chan time.Time // nil unless the last attempt failed
	pause := time.Duration(0)
	for {
		news := r.news
		if retry != nil {
			news = nil
		}
		select {
		case <-news:
		case <-retry:
		case <-sweep.C:
			r.noteFloods(r.now().Add(-floodTime))
			continue
		case <-r.closing:
			r.noteFloods(r.now())
			r.storeRest()
			return
		}
		if err := r.storeAll(context.Background()); err == nil {
			retry, pause = nil, 0
		} else {
			pause = min(max(2*pause, 100*time.Millisecond), longestPause)
			retry = time.After(pause)
			waiting, dropped := r.backlog()
			r.log.Warn("audit entries wait for the store", "error", err, "waiting", waiting, "without_entry", dropped)
		}
	}
}

// noteFloods adds entries about the floods of refused calls that began before a given time.
func (r *Recorder) noteFloods(before time.Time) {
	for _, e := range r.floods.sweep(before) {
		r.add(e, maxNotes)
	}
}

// storeRest stores the pending entries when the recorder closes, and wakes the calls that wait for them.
func (r *Recorder) storeRest() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := r.storeAll(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.stored.Broadcast()
	if err != nil {
		r.log.Error("audit entries are lost because the store is down", "entries", len(r.pending), "error", err)
	}
}

// backlog returns the number of pending entries, and of entries dropped for lack of room.
func (r *Recorder) backlog() (waiting, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending), r.dropped
}

// storeAll stores entries until none are pending.
func (r *Recorder) storeAll(ctx context.Context) error {
	for {
		if waiting, _ := r.backlog(); waiting == 0 {
			return nil
		}
		if err := r.storeSome(ctx); err != nil {
			return err
		}
	}
}

// storeSome stores the oldest pending entries as one value.
func (r *Recorder) storeSome(ctx context.Context) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	r.mu.Lock()
	// A failed attempt may have stored the value, so the next attempt must store exactly the same entries.
	if r.part == 0 {
		r.part = partLength(r.pending)
	}
	some, first, dropped := r.pending[:r.part], r.oldest, r.dropped
	r.mu.Unlock()
	if len(some) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	key := storekey.Audit(some[0].GetAt().AsTime(), r.gateway, first)
	if _, err := r.store.PutMessageIfAbsent(ctx, key, &v1.AuditPart{Entries: some}); err != nil {
		return err
	}
	if dropped > 0 {
		r.log.Error("calls have no audit entry because too many entries waited for the store", "calls", dropped)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending, r.oldest, r.part, r.dropped = r.pending[len(some):], r.oldest+int64(len(some)), 0, r.dropped-dropped
	r.stored.Broadcast()
	return nil
}

// partLength returns how many of the first entries fit into one value.
func partLength(entries []*v1.AuditEntry) int {
	entries = entries[:min(len(entries), maxPart)]
	for i, e := range entries {
		if e.GetAt().AsTime().Sub(entries[0].GetAt().AsTime()).Abs() >= maxSpan {
			return i
		}
	}
	return len(entries)
}
