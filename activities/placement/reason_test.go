package placement

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/dev/golden"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestReasonsGolden(t *testing.T) {
	gpuLabel := constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"gpu"} })
	memory := constrained(func(c *v1.Constraints) { c.NodeLabels, c.MinMemoryMb = []string{"gpu"}, 2048 })
	short := func(n *v1.NodeSnapshot) { n.Memory.AvailableMb = 1024 }
	many := func(n int, changes ...func(*v1.NodeSnapshot)) []*v1.NodeSnapshot {
		var out []*v1.NodeSnapshot
		for i := range n {
			out = append(out, aNode(fmt.Sprintf("worker-%03d", i+1), changes...))
		}
		return out
	}
	full := []func(*v1.NodeSnapshot){slots(1), labels("gpu"), running("o", "t", 1)}
	var uneven []*v1.NodeSnapshot
	for i := range 12 {
		uneven = append(uneven, aNode(fmt.Sprintf("n%02d", i), func(n *v1.NodeSnapshot) { n.Memory.AvailableMb = float64(100 * i) }, labels("gpu")))
	}
	cases := []struct {
		name  string
		nodes []*v1.NodeSnapshot
		task  *historyv1.TaskRequest
	}{
		{"no nodes", nil, aTask("t")},
		{"two groups", []*v1.NodeSnapshot{aNode("a"), aNode("b", labels("gpu"), short), aNode("c")}, aTask("t", memory)},
		{"impossible", []*v1.NodeSnapshot{aNode("a"), aNode("b", labels("gpu")), aNode("c")}, aTask("t", gpuLabel, withCores(16))},
		{"busy", many(2, full...), aTask("t", gpuLabel)},
		{"many nodes", append(many(100), aNode("x", full...)), aTask("t", gpuLabel)},
		{"many figures", uneven, aTask("t", memory)},
		{"pinned and busy", append(many(3), aNode("x", full...)), aTask("t", constrained(func(c *v1.Constraints) { c.TargetNode = "x" }))},
		{"pinned to none", many(3), aTask("t", constrained(func(c *v1.Constraints) { c.TargetNode = "x" }))},
		{"GPUs in use", []*v1.NodeSnapshot{aNode("a", gpus(1)), aNode("b")}, aTask("t", func(r *historyv1.TaskRequest) { r.Resources.Gpus = 1 })},
		{"no session", many(2), aTask("t", inSession("s-1"))},
		{"other sessions", []*v1.NodeSnapshot{aNode("a", sessions("s-2", "s-3")), aNode("b", sessions("s-3"))}, aTask("t", inSession("s-1"))},
		{"many sessions", []*v1.NodeSnapshot{aNode("a", sessions("1", "2", "3", "4", "5", "6", "7", "8"))}, aTask("t", inSession("s-1"))},
		{"session on another node", []*v1.NodeSnapshot{aNode("a", sessions("s-1"), full[0], full[2]), aNode("b")}, aTask("t", inSession("s-1"))},
		{"no cluster", many(2), aTask("t", inCluster("prod"))},
		{"other clusters", []*v1.NodeSnapshot{aNode("n1", clusters("staging", "dev")), aNode("n2", clusters("staging"))}, aTask("t", inCluster("prod"))},
		{"cluster of many nodes", many(9, clusters("staging")), aTask("t", inCluster("prod"))},
		{"cluster of another node", []*v1.NodeSnapshot{aNode("n1", clusters("prod"), full[0], full[2]), aNode("n2")}, aTask("t", inCluster("prod"))},
		{"long names", many(1), aTask("t", constrained(func(c *v1.Constraints) { c.NodeLabels = []string{strings.Repeat("ä", 200)} }))},
	}
	var out strings.Builder
	for _, tc := range cases {
		q := newQueue(newClock(), tc.nodes...)
		if tc.name == "GPUs in use" {
			q.Request(Run{ID: "other"}, []*historyv1.TaskRequest{aTask("t", func(r *historyv1.TaskRequest) { r.Resources.Gpus = 1 })})
			q.Place()
		}
		q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{tc.task})
		_, reasons := placeAll(t, q, "r")
		if len(reasons["t"]) > longestReason {
			t.Errorf("%s: %d bytes", tc.name, len(reasons["t"]))
		}
		fmt.Fprintf(&out, "%s\n  %s\n", tc.name, reasons["t"])
	}
	golden.Check(t, "testdata/reasons.golden", out.String())
}

func TestReasonSaysWhichNodeReachedAClusterBefore(t *testing.T) {
	prod := v1.ClusterCapability("prod")
	reason := func(q *Queue) string { return q.Explain("r", aTask("t", inCluster("prod"))).GetReason() }
	q := newQueue(newClock(), aNode("n1", clusters("prod")), aNode("n2"))
	q.SetNodes(live(aNode("n1", sequence(1)), aNode("n2")))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", inCluster("prod"))})
	if got, want := reason(q), "no node reaches cluster prod, which n1 no longer reaches; see the log of that node"; got != want {
		t.Errorf("after n1 has lost it: %q", got)
	}
	q.SetNodes(live(aNode("n1", sequence(2)), aNode("n2", clusters("staging"), sequence(2))))
	if got, want := reason(q), "no node reaches cluster prod, which n1 no longer reaches; see the log of that node; available: staging (on n2)"; got != want {
		t.Errorf("with another one: %q", got)
	}
	for _, last := range []*v1.NodeSnapshot{aNode("n1", sequence(3)), aNode("n1", clusters("prod"), sequence(4))} {
		q.SetNodes([]Node{{Snapshot: last, State: v1.NodeOffline}, {Snapshot: aNode("n2", sequence(3))}})
		if got, want := reason(q), "no node reaches cluster prod, which was reached by n1, now offline"; got != want {
			t.Errorf("after n1 has gone offline with %v: %q", last.GetCapabilities()[prod], got)
		}
	}
	q.SetNodes(live(aNode("n1", clusters("prod"), sequence(5)), aNode("n2", sequence(5))))
	if grants, _ := placeAll(t, q, "r"); len(grants) != 1 {
		t.Errorf("placed %v when n1 reaches it again", grants)
	}
	if n := len(q.fleet.byName["n1"].lost); n > 0 {
		t.Errorf("%d capabilities are still lost", n)
	}
}

func sequence(number int64) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) { n.Sequence = number }
}

// sessions gives a node agent sessions.
func sessions(ids ...string) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		n.Capabilities = map[string]string{"gpu": "nvidia"}
		for _, id := range ids {
			n.Capabilities[v1.SessionCapability(id)] = "true"
		}
	}
}

// clusters makes a node reach clusters.
func clusters(names ...string) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		n.Capabilities = map[string]string{"gpu": "nvidia"}
		for _, name := range names {
			n.Capabilities[v1.ClusterCapability(name)] = "true"
		}
	}
}

// inCluster makes a task require a cluster.
func inCluster(name string) func(*historyv1.TaskRequest) {
	return constrained(func(c *v1.Constraints) {
		c.RequiresCapabilities = map[string]string{v1.ClusterCapability(name): "true"}
	})
}

// inSession makes a task require an agent session.
func inSession(id string) func(*historyv1.TaskRequest) {
	return constrained(func(c *v1.Constraints) { c.RequiresCapabilities = map[string]string{v1.SessionCapability(id): "true"} })
}
