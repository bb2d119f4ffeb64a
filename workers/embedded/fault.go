package embedded

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// faultAge is how long a fault counts as present after it was last seen. The server's own work meets a broken database
	// several times a second.
	faultAge = 10 * time.Second
	// faultInterval is the time between two records of a fault that persists.
	faultInterval = time.Minute
)

// databaseFaults maps messages of SQLite to what a person can do about them. The server repeats its work, so a run continues once
// the cause is gone.
var databaseFaults = []struct {
	message string
	fault   error
}{
	{"database or disk is full", errors.New("the disk of Temporal's database is full; free some space, and all runs continue")},
	{"disk I/O error", errors.New("the disk of Temporal's database reports I/O errors; check the disk and the kernel log")},
	{"attempt to write a readonly database", errors.New("Temporal's database is read-only; make its file and its file system writable")},
	{"database disk image is malformed", errors.New("Temporal's database is damaged; restore its file from a backup")},
}

// faultWatch finds faults of the database in the log of the server, which reports them nowhere else. It is safe for concurrent
// use.
type faultWatch struct {
	file string
	out  *slog.Logger
	now  func() time.Time

	mu       sync.Mutex
	last     error
	seen     time.Time // when last was seen
	recorded time.Time // when a fault was last recorded
}

// observe looks for a fault in a record of the server.
func (w *faultWatch) observe(text string) {
	for _, known := range databaseFaults {
		if strings.Contains(text, known.message) {
			w.add(known.fault)
			return
		}
	}
}

func (w *faultWatch) add(fault error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.last, w.seen = fault, now
	if now.Sub(w.recorded) >= faultInterval {
		w.recorded = now
		w.out.Error("Temporal cannot work", "error", fault, "database", w.file)
	}
}

// current returns the fault that was seen recently, or nil.
func (w *faultWatch) current() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil || w.now().Sub(w.seen) > faultAge {
		return nil
	}
	return w.last
}
