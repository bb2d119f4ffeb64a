package executortest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// flood checks that the suite's process stays small, however much an attempt
// prints.
func (h Harness) flood(t *testing.T) {
	e := h.New(t)
	a, c := h.attempt(t, Program{Flood: 1 << 20}) // allocations of the first attempt do not count as growth
	a.Stdout = &counter{}
	h.finish(t, t.Context(), e, a, c)
	a, c = h.attempt(t, Program{Flood: h.FloodBytes})
	var w counter
	a.Stdout = &w
	before := memory()
	h.finish(t, t.Context(), e, a, c)
	if w.bytes != h.FloodBytes {
		t.Errorf("%d bytes came, want %d", w.bytes, h.FloodBytes)
	}
	if grown := memory() - before; grown > 16<<20 {
		t.Errorf("this process has grown by %d MiB", grown>>20)
	}
}

func (h Harness) output(t *testing.T) {
	e := h.New(t)
	t.Run("slow reader", func(t *testing.T) {
		const bytes = 1 << 20
		a, c := h.attempt(t, Program{Flood: bytes})
		w := counter{delay: 10 * time.Millisecond}
		a.Stdout = &w
		h.finish(t, t.Context(), e, a, c)
		if w.bytes != bytes {
			t.Errorf("%d bytes came, want %d", w.bytes, bytes)
		}
	})
	t.Run("slow reader and a daemon", func(t *testing.T) {
		const bytes = 50 << 10 // fits into the pipe, so the program has ended long before
		a, c := h.attempt(t, Program{Flood: bytes, Daemon: true})
		w := counter{delay: 500 * time.Millisecond}
		a.Stdout = &w
		h.finish(t, t.Context(), e, a, c)
		if w.bytes != bytes {
			t.Errorf("%d bytes came, want %d", w.bytes, bytes)
		}
	})
	t.Run("failing reader", func(t *testing.T) {
		a, c := h.attempt(t, Program{Flood: 1 << 20, Code: 3})
		full := errors.New("no space left")
		a.Stdout = &counter{fail: full}
		r, err := e.Run(t.Context(), a, c.spawned)
		if !errors.Is(err, full) {
			t.Errorf("error %v, want the writer's", err)
		}
		if r.ExitCode != 3 {
			t.Errorf("exit code %d, want the program's own 3: it must not notice", r.ExitCode)
		}
		h.nothingLeft(t, a.ID)
	})
	t.Run("no reader", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "x", Err: "y"})
		a.Stdout, a.Stderr = nil, nil
		h.finish(t, t.Context(), e, a, c)
	})
}

// counter is a writer that counts bytes, with a delay for each write if delay
// is set, or that fails with fail.
type counter struct {
	bytes int64
	delay time.Duration
	fail  error
}

func (c *counter) Write(p []byte) (int, error) {
	if c.fail != nil {
		return 0, c.fail
	}
	if c.delay > 0 {
		time.Sleep(c.delay)
	}
	c.bytes += int64(len(p))
	return len(p), nil
}

// memory returns how much memory this process has obtained from the system, in
// bytes.
func memory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

func (h Harness) many(t *testing.T) {
	e := h.New(t)
	var all sync.WaitGroup
	for i := range h.Many {
		p := Program{Out: fmt.Sprintf("out %d", i), Err: fmt.Sprintf("err %d", i), Code: i % 7, Child: i%5 == 0}
		a, c := h.attempt(t, p)
		all.Go(func() {
			r, err := e.Run(t.Context(), a, c.spawned)
			if err != nil {
				t.Errorf("%d: %v", i, err)
				return
			}
			if r.ExitCode != p.Code || c.out.String() != p.Out || c.err.String() != p.Err || c.spawns.Load() != 1 {
				t.Errorf("%d: result %+v, stdout %q, stderr %q, spawned %d times", i, r, c.out.String(), c.err.String(), c.spawns.Load())
			}
		})
	}
	all.Wait()
}
