package workers

import (
	"context"
	"fmt"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// leaveCheckpoint returns a move that fails the dispatch and leaves a checkpoint.
func leaveCheckpoint(text string) move {
	return func(context.Context, *puppet) (*v1.ExecuteResponse, error) {
		return &v1.ExecuteResponse{
			State: "failed", Reason: "exit_code", Error: "exit code 1", Result: &v1.TaskResult{ExitCode: 1},
			AssignedAt: at(1), StartedAt: at(2), CompletedAt: at(3), Checkpoint: &v1.Checkpoint{Data: []byte(text)},
		}, nil
	}
}

// checkpoints returns the checkpoints in the requests as a text.
func (p *puppet) checkpoints() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	for _, r := range p.requests {
		text += fmt.Sprintf("%s:%s ", r.GetTask(), r.GetCheckpoint().GetData())
	}
	return text
}

// TestAgainFromACheckpoint checks that a task repeated because it failed gets its checkpoint in the next generations,
// and that a task repeated by name starts without one.
func TestAgainFromACheckpoint(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	p := c.puppet("n", leaveCheckpoint("one"), leaveCheckpoint("two"), leaveCheckpoint("three"))
	in := c.input(`{name: resumed, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`)
	h := c.submit(in)
	want(t, h.wait(), "failed", map[string]string{"a": "failed"})
	h = h.anew(in, 1, &v1.Rerun{Failed: true})
	want(t, h.wait(), "failed", map[string]string{"a": "failed"})
	h = h.anew(in, 2, &v1.Rerun{From: []string{"a"}})
	want(t, h.wait(), "failed", map[string]string{"a": "failed"})
	h = h.anew(in, 3, &v1.Rerun{Failed: true})
	want(t, h.wait(), "completed", map[string]string{"a": "completed"})
	h = h.anew(in, 4, &v1.Rerun{From: []string{"a"}})
	want(t, h.wait(), "completed", map[string]string{"a": "completed"})
	if got := p.checkpoints(); got != "a: a:one a: a:three a: " {
		t.Errorf("the requests bring %q", got)
	}
}

// TestAgainFromTheCheckpointOfADeadLetter checks that a dead letter that is retried in the next generation also gets
// its checkpoint.
func TestAgainFromTheCheckpointOfADeadLetter(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	p := c.puppet("n", leaveCheckpoint("one"), leaveCheckpoint("two"))
	in := c.input(`{name: letter, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 1}}}}`)
	h := c.submit(in)
	want(t, h.wait(), "failed", map[string]string{"a": "dead_letter"})
	want(t, h.again(in, 1, "a").wait(), "completed", map[string]string{"a": "completed"})
	if got := p.checkpoints(); got != "a: a:one a:two " {
		t.Errorf("the requests bring %q", got)
	}
}

// TestInstancesAgainFromTheirCheckpoints checks that a failed instance gets its checkpoint in the next generation, also
// in a part of a large fan-out.
func TestInstancesAgainFromTheirCheckpoints(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	for kind, count := range map[string]int{"inline": 2, "large": 6} {
		t.Run(kind, func(t *testing.T) {
			c := y.workers(t, nil)
			p := c.puppet("n", (*puppet)(nil).complete, leaveCheckpoint("second"))
			in := c.input(fmt.Sprintf(`{name: "parts-%s", tasks: {each: {type: shell, spec: {command: x}, parallel: %d, concurrency: 1, retry: {maxRetries: 0}}}}`, kind, count))
			h := c.submit(in)
			if run := h.wait(); run.GetState() != "failed" {
				t.Fatalf("the run is %s", run.GetState())
			}
			p.mu.Lock()
			before := len(p.requests)
			p.mu.Unlock()
			want(t, h.anew(in, 1, &v1.Rerun{Failed: true}).wait(), "completed", map[string]string{"each": "completed"})
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
