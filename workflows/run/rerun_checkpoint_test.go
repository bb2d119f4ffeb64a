package run_test

import (
	"fmt"
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers/workertest"
)

// TestRerunContinuesFromCheckpoint checks that a task repeated because it failed gets its checkpoint in the next
// generations, and that a task repeated by name starts without one.
func TestRerunContinuesFromCheckpoint(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	p := startPuppet(c, "n", leaveCheckpoint("one"), leaveCheckpoint("two"), leaveCheckpoint("three"))
	in := c.Input(`{name: resumed, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`)
	h := c.Submit(in)
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"a": "failed"})
	h = h.Rerun(in, 1, &historyv1.Rerun{Failed: true})
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"a": "failed"})
	h = h.Rerun(in, 2, &historyv1.Rerun{From: []string{"a"}})
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"a": "failed"})
	h = h.Rerun(in, 3, &historyv1.Rerun{Failed: true})
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"a": "completed"})
	h = h.Rerun(in, 4, &historyv1.Rerun{From: []string{"a"}})
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"a": "completed"})
	if got := p.checkpoints(); got != "a: a:one a: a:three a: " {
		t.Errorf("the requests bring %q", got)
	}
}

// TestRerunOfInstancesContinuesFromTheirCheckpoints checks that a failed instance gets its checkpoint in the next
// generation, also in a partition of a large fan-out.
func TestRerunOfInstancesContinuesFromTheirCheckpoints(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, inPartitions)
	for kind, count := range map[string]int{"inline": 2, "large": 6} {
		t.Run(kind, func(t *testing.T) {
			c := y.Nodes(t, nil)
			p := startPuppet(c, "n", (*puppet)(nil).complete, leaveCheckpoint("second"))
			in := c.Input(fmt.Sprintf(`{name: "parts-%s", tasks: {each: {type: shell, spec: {command: x}, parallel: %d, concurrency: 1, retry: {maxRetries: 0}}}}`, kind, count))
			h := c.Submit(in)
			if run := h.Wait(); run.GetState() != "failed" {
				t.Fatalf("the run is %s", run.GetState())
			}
			p.mu.Lock()
			before := len(p.requests)
			p.mu.Unlock()
			workertest.CheckRun(t, h.Rerun(in, 1, &historyv1.Rerun{Failed: true}).Wait(), "completed", map[string]string{"each": "completed"})
			p.mu.Lock()
			defer p.mu.Unlock()
			found := map[int32]string{}
			for _, r := range p.requests[before:] {
				found[r.GetIndex()] = string(r.GetCheckpoint().GetData())
			}
			for index, text := range found {
				if wanted := map[bool]string{true: "second"}[index == 1]; text != wanted {
					t.Errorf("instance %d finds %q, want %q", index, text, wanted)
				}
			}
			if _, again := found[1]; !again || len(found) != count-1 {
				t.Errorf("instances %v were done again", found)
			}
		})
	}
}
