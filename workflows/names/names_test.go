package names

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAttemptID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,62}`).Draw(t, "task")
		claim := rapid.Int32Range(0, math.MaxInt32).Draw(t, "claim")
		gotTask, gotClaim, ok := ParseAttemptID(AttemptID(task, claim))
		if !ok || gotTask != task || gotClaim != claim {
			t.Fatalf("%s is read as %q %d %v", AttemptID(task, claim), gotTask, gotClaim, ok)
		}
	})
	for _, id := range []string{"", "#1", "a", "a#", "a#-1", "a#x", "a#99999999999"} {
		if task, claim, ok := ParseAttemptID(id); ok {
			t.Errorf("%q is read as %q %d", id, task, claim)
		}
	}
}

func TestNodeWorkflowID(t *testing.T) {
	if node, ok := ParseNodeWorkflowID(NodeWorkflowID("box-1")); !ok || node != "box-1" {
		t.Errorf("got %q %v", node, ok)
	}
	for _, id := range []string{"", "node:", "build-0123"} {
		if node, ok := ParseNodeWorkflowID(id); ok {
			t.Errorf("%q is read as node %q", id, node)
		}
	}
}

func TestNodeNames(t *testing.T) {
	for name, want := range map[string]bool{
		"gpu-1": true, "a": true, "rack.7": true, strings.Repeat("a", MaxNode): true,
		"": false, ".": false, "..": false, "../x": false, "a/b": false, "-a": false, "a-": false, "GPU": false, "büro": false, strings.Repeat("a", MaxNode+1): false,
	} {
		if IsNode(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestNodeQueue(t *testing.T) {
	for lane, want := range map[Lane]string{CPULane: "node:a:cpu", GPULane: "node:a:gpu", ControlLane: "node:a:control"} {
		if got := NodeQueue("a", lane); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if node, parsed, ok := ParseNodeQueue(want); !ok || node != "a" || parsed != lane {
			t.Errorf("%s is read as %s, %s", want, node, parsed)
		}
	}
	for _, queue := range []string{"", "control", "node:a", "node::cpu", "node:a:lane"} {
		if node, lane, ok := ParseNodeQueue(queue); ok {
			t.Errorf("%q is read as %s, %s", queue, node, lane)
		}
	}
}

func TestRunID(t *testing.T) {
	form := regexp.MustCompile(`^my\.flow-1-[0-9bcdfghjkmnpqrstvwxyz]{8}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := NewRunID("my.flow-1")
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("%s, seen before: %v", id, seen[id])
		}
		seen[id] = true
	}
}

func TestStoredWorkflowID(t *testing.T) {
	if name, ok := ParseStoredWorkflowID(StoredWorkflowID("a.b-c")); !ok || name != "a.b-c" {
		t.Errorf("%q, %t", name, ok)
	}
	for _, id := range []string{"workflow:", "node:a", "a"} {
		if name, ok := ParseStoredWorkflowID(id); ok {
			t.Errorf("%q is taken for that of %q", id, name)
		}
	}
}

// TestKeyedRunID pins the IDs, because a key must always give the same ID.
func TestKeyedRunID(t *testing.T) {
	if id := KeyedRunID("build", "k1"); id != "build-xzn9g2k6" {
		t.Errorf("the id is %q", id)
	}
	if KeyedRunID("build", "k1") == KeyedRunID("build", "k2") {
		t.Error("two keys have one id")
	}
	if KeyedRunID("a-b", "c") == KeyedRunID("a", "b-c") {
		t.Error("name and key run together")
	}
}

func TestFanOutIDs(t *testing.T) {
	for _, chain := range []string{"", "0197f7a2-6c5e-7d21-8a8b-1f1d2c3b4a59"} {
		f := FanOut{Run: "build-and-deploy-abc123", Chain: chain, Generation: 2, Task: "each", From: 4000}
		if read, ok := ParseFanOutID(f.ID()); !ok || read != f {
			t.Errorf("%s is read as %+v, %v", f.ID(), read, ok)
		}
	}
	for _, id := range []string{"", "r", "r/1", "r/x/each[1]", "r/-1/each[1]", "/1/each[1]", "r/1/each", "r/1/each[-1]"} {
		if _, ok := ParseFanOutID(id); ok {
			t.Errorf("%q is read", id)
		}
	}
}
