package executortest

import "testing"

// memory checks the memory limit of attempts, where it is enforced.
func (h Harness) memory(t *testing.T) {
	if !h.Memory {
		t.Skip("memory is not limited here")
	}
	e := h.New(t)
	const limit = 32 << 20
	for name, test := range map[string]struct {
		program Program
		oom     bool
	}{
		"too much":     {Program{Hog: 10 * limit}, true},
		"enough":       {Program{Hog: limit / 32}, false},
		"killed":       {Program{Kill: "KILL"}, false},
		"fails itself": {Program{Hog: limit / 32, Code: 3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := h.attempt(t, test.program)
			a.Limits.Memory = limit
			r := h.finish(t, t.Context(), e, a, c)
			if r.OOMKilled != test.oom || r.Stopped {
				t.Errorf("result %+v, want that memory was short: %v", r, test.oom)
			}
			if test.oom && r.ExitCode == 0 {
				t.Error("it is short of memory, and succeeds")
			}
		})
	}
}
