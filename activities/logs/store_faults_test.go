package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/activities/store"
	"switchyard/activities/store/storetest"
)

var errDown = errors.New("the store is down")

func TestStoreThatFailsForAWhileLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		s := hooked{storetest.Open(t, "mem://"), func(context.Context) error {
			if down.Load() {
				return errDown
			}
			return nil
		}}
		w := NewWriter(s, attempt, Options{ChunkBytes: 4 << 10})
		text := filler(3500)
		for i := 0; i < len(text); i += 500 {
			write(t, w, Stdout, text[i:i+500])
			time.Sleep(time.Second)
		}
		down.Store(false)
		time.Sleep(time.Second)
		if l := readAll(t, s, attempt); string(l.stdout) != text {
			t.Errorf("a second after the store is back the log has %d bytes, want %d", len(l.stdout), len(text))
		}
		closeWriter(t, w)
	})
}

// sized is a store whose Put first calls a function with the size of the value.
type sized struct {
	*store.Store
	put func(size int) error
}

func (s sized) Put(ctx context.Context, key string, value []byte) error {
	if err := s.put(len(value)); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, value)
}

func TestLogEndsWithTheReasonWhenTheStoreRunsOutOfSpace(t *testing.T) {
	for name, room := range map[string]int{"for all but notices": store.MaxNoticeBytes, "for anything": -1} {
		synctest.Test(t, func(t *testing.T) {
			var low atomic.Bool
			s := sized{storetest.Open(t, "mem://"), func(size int) error {
				if low.Load() && size > room {
					return fmt.Errorf("%w: 7 MiB left", store.ErrLowSpace)
				}
				return nil
			}}
			w := NewWriter(s, attempt, Options{ChunkBytes: 4 << 10})
			write(t, w, Stdout, "before\n")
			time.Sleep(time.Second)
			low.Store(true)
			for range 100 {
				write(t, w, Stdout, filler(1000))
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Second)
			if room < 0 {
				low.Store(false)
			}
			err := w.Close(context.Background())
			if !errors.Is(err, store.ErrLowSpace) || !strings.Contains(err.Error(), "bytes of output are missing") {
				t.Errorf("%s: Close returned %v", name, err)
			}
			l := readAll(t, s, attempt)
			// Chunks as small as a notice are stored, too.
			if !strings.HasPrefix(string(l.stdout), "before\n") || len(l.stdout) > 2*store.MaxNoticeBytes || !l.ended {
				t.Errorf("%s: the log has %d bytes, ended %t", name, len(l.stdout), l.ended)
			}
			if n := strings.Count(string(l.stderr), "the log ends here: "); room > 0 && (n != 1 || !strings.Contains(string(l.stderr), "7 MiB left")) {
				t.Errorf("%s: the log says %q", name, l.stderr)
			}
			if text, _ := w.Tail(Stdout); !strings.HasSuffix(text, filler(1000)[900:]) {
				t.Errorf("%s: the tail has not what was printed last", name)
			}
		})
	}
}

// Output that does not fit when the writer is closed is cut, and the log still has its end.
func TestLogThatRunsOutOfSpaceAtTheEndHasItsEnd(t *testing.T) {
	s := sized{storetest.Open(t, "mem://"), func(size int) error {
		if size > store.MaxNoticeBytes {
			return store.ErrLowSpace
		}
		return nil
	}}
	w := NewWriter(s, attempt, Options{FlushInterval: time.Hour})
	write(t, w, Stdout, filler(5000))
	_ = w.Close(context.Background())
	if l := readAll(t, s, attempt); len(l.stdout) > 0 || !l.ended || !strings.Contains(string(l.stderr), "the log ends here") {
		t.Errorf("the log has %d bytes, ended %t, and says %q", len(l.stdout), l.ended, l.stderr)
	}
}

func TestLogOfARunThatHasUsedItsQuotaNamesTheQuota(t *testing.T) {
	s := storetest.Open(t, "mem://")
	s.LimitLogs(16 << 10)
	w := NewWriter(s, attempt, Options{ChunkBytes: 4 << 10})
	for range 100 {
		write(t, w, Stdout, filler(1000))
	}
	if err := w.Close(context.Background()); !errors.Is(err, store.ErrLogQuota) {
		t.Errorf("Close returned %v", err)
	}
	l := readAll(t, s, attempt)
	if !l.ended || len(l.stdout) == 0 || len(l.stdout) > 16<<10 {
		t.Errorf("the log has %d bytes, ended %t", len(l.stdout), l.ended)
	}
	if text := string(l.stderr); strings.Count(text, "[switchyard: the log ends here: the logs of this run have reached their quota (--log-quota-gb); the task continues]") != 1 {
		t.Errorf("the log says %q", text)
	}
}

func TestStoreThatIsDownDoesNotHoldUpTheTask(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "after a time-out": time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var down atomic.Bool
			down.Store(true)
			s := hooked{storetest.Open(t, "mem://"), func(ctx context.Context) error {
				if !down.Load() {
					return nil
				}
				select {
				case <-time.After(takes):
					return errDown
				case <-ctx.Done():
					return ctx.Err()
				}
			}}
			w := NewWriter(s, attempt, Options{ChunkBytes: 4 << 10})
			text := filler(100_000)
			began := time.Now()
			for i := 0; i < len(text); i += 500 {
				write(t, w, Stdout, text[i:i+500])
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("fails %s: 100 KB took %v", name, took)
			}
			down.Store(false)
			time.Sleep(2 * time.Minute)
			write(t, w, Stdout, "back\n")
			err := w.Close(context.Background())
			if err == nil || !strings.Contains(err.Error(), "bytes of output are missing") {
				t.Errorf("fails %s: Close returned %v", name, err)
			}
			if takes == 0 && !errors.Is(err, errDown) {
				t.Errorf("Close does not tell the cause: %v", err)
			}
			l := readAll(t, s, attempt)
			if !strings.HasPrefix(string(l.stdout), text[:3000]) || !strings.HasSuffix(string(l.stdout), "back\n") || !l.ended {
				t.Errorf("fails %s: the log has %d bytes, ended %t", name, len(l.stdout), l.ended)
			}
			if strings.Count(string(l.stderr), "bytes of output are missing here") != 1 {
				t.Errorf("fails %s: notice %q", name, l.stderr)
			}
			if tail, truncated := w.Tail(Stdout); !strings.HasSuffix(tail, text[50_000:]+"back\n") || !truncated {
				t.Errorf("fails %s: the tail has %d bytes", name, len(tail))
			}
		})
	}
}

func TestCloseTriesAgainAndReportsOutputThatCouldNotBeStored(t *testing.T) {
	for _, failures := range []int{closeTries - 1, closeTries} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			s := hooked{storetest.Open(t, "mem://"), func(context.Context) error {
				if tries++; tries <= failures {
					return errDown
				}
				return nil
			}}
			w := NewWriter(s, attempt, Options{})
			write(t, w, Stdout, "0123456789")
			if failures < closeTries {
				closeWriter(t, w)
				if l := readAll(t, s, attempt); string(l.stdout) != "0123456789" || !l.ended {
					t.Errorf("log %q, ended %t", l.stdout, l.ended)
				}
				return
			}
			first := w.Close(context.Background())
			if !errors.Is(first, errDown) || !strings.Contains(first.Error(), "10 bytes") || tries != closeTries {
				t.Errorf("Close returned %v after %d tries", first, tries)
			}
			if second := w.Close(context.Background()); second == nil || second.Error() != first.Error() {
				t.Errorf("a second Close returned %v", second)
			}
		})
	}
}

func TestCloseEndsWithItsContext(t *testing.T) {
	for name, heeds := range map[string]bool{"heeds its context": true, "does not": false} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			s := hooked{storetest.Open(t, "mem://"), func(ctx context.Context) error {
				if !heeds {
					ctx = context.Background()
				}
				select {
				case <-release:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}
			w := NewWriter(s, attempt, Options{})
			write(t, w, Stdout, "x")
			time.Sleep(time.Second) // a flush hangs now
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			if err := w.Close(ctx); err == nil {
				t.Errorf("a store that %s: Close returned no error", name)
			}
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("a store that %s: Close took %v", name, took)
			}
			close(release)
			synctest.Wait()
		})
	}
}

func TestSlowStoreSlowsDownTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hooked{storetest.Open(t, "mem://"), func(context.Context) error { time.Sleep(time.Second); return nil }}
		w := NewWriter(s, attempt, Options{ChunkBytes: 4 << 10})
		text := filler(100_000)
		began := time.Now()
		var printers sync.WaitGroup
		for _, stream := range []string{Stdout, Stderr} {
			printers.Go(func() {
				for i := 0; i < len(text); i += 500 {
					write(t, w, stream, text[i:i+500])
					w.mu.Lock()
					if held := len(w.pending.data) + w.sealedBytes; held > 2*4<<10 {
						t.Errorf("%d bytes are held in memory", held)
					}
					w.mu.Unlock()
				}
			})
		}
		printers.Wait()
		if took := time.Since(began); took < 45*time.Second {
			t.Errorf("200 KB in chunks of 4 KiB a second took %v", took)
		}
		closeWriter(t, w)
		if l := readAll(t, s, attempt); string(l.stdout) != text || string(l.stderr) != text {
			t.Errorf("the log has %d and %d bytes, want %d each", len(l.stdout), len(l.stderr), len(text))
		}
	})
}

func TestBlockedWriteEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := hooked{storetest.Open(t, "mem://"), func(context.Context) error { <-release; return nil }}
		w := NewWriter(s, attempt, Options{ChunkBytes: 4 << 10})
		var printer sync.WaitGroup
		printer.Go(func() {
			if _, err := w.Stream(Stdout).Write([]byte(filler(50_000))); err == nil {
				t.Error("a Write that Close cut short returned no error")
			}
		})
		synctest.Wait()
		printer.Go(func() { closeWriter(t, w) })
		synctest.Wait()
		close(release)
		printer.Wait()
	})
}
