package executortest

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"switchyard/activities/executor"
)

func (h Harness) streams(t *testing.T) {
	e := h.New(t)
	a, c := h.attempt(t, Program{Out: "to standard output\t\u00ff\n", Err: "to standard error"})
	r := h.finish(t, t.Context(), e, a, c)
	if got, want := c.out.String(), "to standard output\t\u00ff\n"; got != want {
		t.Errorf("standard output %q, want %q", got, want)
	}
	if got, want := c.err.String(), "to standard error"; got != want {
		t.Errorf("standard error %q, want %q", got, want)
	}
	if r.ExitCode != 0 || r.Signal != "" || r.Stopped || r.OOMKilled {
		t.Errorf("result %+v, want exit code 0 and nothing else", r)
	}
}

func (h Harness) exitCode(t *testing.T) {
	e := h.New(t)
	for _, code := range []int{0, 1, 3, 126, 127, 137, 255} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			a, c := h.attempt(t, Program{Code: code})
			r := h.finish(t, t.Context(), e, a, c)
			signal := ""
			if code == 137 && h.OnlyCodes {
				signal = "SIGKILL"
			}
			if r.ExitCode != code || r.Signal != signal || r.Stopped || r.OOMKilled {
				t.Errorf("result %+v, want exit code %d and nothing else", r, code)
			}
		})
	}
}

func (h Harness) signal(t *testing.T) {
	e := h.New(t)
	for name, code := range map[string]int{"KILL": 137, "TERM": 143, "SEGV": 139} {
		t.Run(name, func(t *testing.T) {
			a, c := h.attempt(t, Program{Kill: name})
			r := h.finish(t, t.Context(), e, a, c)
			if r.ExitCode != code || r.Signal != "SIG"+name || r.Stopped || r.OOMKilled {
				t.Errorf("result %+v, want exit code %d by SIG%s and nothing else", r, code, name)
			}
		})
	}
}

func (h Harness) environment(t *testing.T) {
	e := h.New(t)
	for _, value := range []string{"", "plain", "a=b", "two\nlines", "quotes ' \" and $HOME", "\u00fc"} {
		t.Run(strconv.Quote(value), func(t *testing.T) {
			a, c := h.attempt(t, Program{Env: "SUITE_VALUE"})
			a.Env["SUITE_VALUE"] = value
			h.finish(t, t.Context(), e, a, c)
			if got := c.out.String(); got != value {
				t.Errorf("the program sees %q, want %q", got, value)
			}
		})
	}
}

func (h Harness) directory(t *testing.T) {
	e := h.New(t)
	for name, dir := range map[string]string{"default": "", "relative": "sub/dir", "absolute": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			a, c := h.attempt(t, Program{PrintDir: true, Dir: dir})
			want := filepath.Join(a.Dirs.Base, dir)
			switch {
			case filepath.IsAbs(dir):
				want = dir
			case dir == "" && h.DefaultDir != "":
				want = h.DefaultDir
			}
			if err := os.MkdirAll(want, 0o755); err != nil {
				t.Fatal(err)
			}
			h.finish(t, t.Context(), e, a, c)
			if got := c.out.String(); got != want+"\n" {
				t.Errorf("runs in %q, want %q", got, want)
			}
		})
	}
}

func (h Harness) startErrors(t *testing.T) {
	e := h.New(t)
	check := func(t *testing.T, a executor.Attempt, c *capture, code int) *executor.StartError {
		t.Helper()
		_, err := e.Run(t.Context(), a, c.spawned)
		start := executor.AsStartError(err)
		if start == nil {
			t.Fatalf("error %v, want a StartError", err)
		}
		if start.ExitCode != code {
			t.Errorf("exit code %d, want %d (%v)", start.ExitCode, code, err)
		}
		if c.spawns.Load() != 0 {
			t.Error("spawned was called though nothing has started")
		}
		h.nothingLeft(t, a.ID)
		return start
	}
	t.Run("no such program", func(t *testing.T) {
		a, c := h.attempt(t, Program{NotFound: true})
		check(t, a, c, 127)
	})
	t.Run("no such directory", func(t *testing.T) {
		a, c := h.attempt(t, Program{Dir: "not/there"})
		check(t, a, c, 126)
	})
	for name, spec := range h.BadSpecs {
		t.Run(name, func(t *testing.T) {
			a, c := h.attempt(t, Program{})
			a.Spec = spec
			check(t, a, c, 126)
		})
	}
	t.Run("environment that no program can have", func(t *testing.T) {
		a, c := h.attempt(t, Program{})
		a.Env = map[string]string{"VALUE": "a\x00b"}
		if start := check(t, a, c, 126); !start.BadSpec {
			t.Errorf("another attempt could start: %v", start)
		}
	})
}

func (h Harness) spawnedFirst(t *testing.T) {
	e := h.New(t)
	for range h.Repeats {
		a, c := h.attempt(t, Program{Out: "x", Err: "y"})
		a.Stdout, a.Stderr = notBefore(t, &c.spawns), notBefore(t, &c.spawns)
		h.finish(t, t.Context(), e, a, c)
	}
}

// after is a writer that fails the test on output that arrives before spawned
// was called.
type after struct {
	t      *testing.T
	spawns *atomic.Int32
}

func notBefore(t *testing.T, spawns *atomic.Int32) after { return after{t, spawns} }

func (w after) Write(p []byte) (int, error) {
	if w.spawns.Load() == 0 {
		w.t.Error("output came before spawned was called")
	}
	return len(p), nil
}
