package placement

import (
	"fmt"
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

func remote(r *historyv1.TaskRequest) { r.Type = v1.TypeK8sJob }

func inClusters(n *v1.NodeSnapshot) { n.Executors = append(n.Executors, v1.TypeK8sJob) }

// TestRemoteTaskTakesNothingOfItsNode checks that a remote task leaves the resources of its node to other tasks.
func TestRemoteTaskTakesNothingOfItsNode(t *testing.T) {
	q := newQueue(newClock(), aNode("a", slots(1), inClusters))
	huge := func(r *historyv1.TaskRequest) {
		cores := 500.0
		r.Resources = &v1.Resources{Cores: &cores, MemoryMb: 1 << 20, Gpus: 8, NumaNode: new(int32)}
		r.Constraints.RequiresGpu = true
	}
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("x", remote, huge)})
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("y", remote, huge)})
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("local")})
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("more")})
	q.Place()
	placed, stuck := q.Take("r")
	lanes := map[string]string{}
	for _, a := range placed {
		lanes[a.GetTask()] = a.GetQueue()
		if len(a.GetGpus()) > 0 || a.NumaNode != nil {
			t.Errorf("%s was given %v", a.GetTask(), a)
		}
	}
	if got := fmt.Sprint(lanes); got != "map[local:node:a:cpu x:node:a:remote y:node:a:remote]" {
		t.Errorf("placed are %s", got)
	}
	if len(stuck) != 1 || stuck[0].GetReason() != "0 of 1 nodes fit: a has no free slot of 1" {
		t.Errorf("waiting are %v", stuck)
	}
	for _, task := range []string{"x", "y", "local"} {
		release(q, "r", task, 1)
	}
	if n := q.fleet.byName["a"]; n.tasks != 0 || n.remotes != 0 || n.byAge.Len() != 0 || len(n.priorities) != 0 || n.machine.holds != (amount{}) {
		t.Errorf("after all were released, the node has %+v", n)
	}
}

// TestRemoteTasksOfANodeAreBounded checks the limit of remote tasks on a node, which includes those that an
// earlier queue has placed.
func TestRemoteTasksOfANodeAreBounded(t *testing.T) {
	c := newClock()
	n := aNode("a", slots(1), inClusters)
	for i := range names.MaxRemoteAttempts - 1 {
		n.Running = append(n.Running, &v1.RunningAttempt{RunId: "old", Task: fmt.Sprintf("each[%d]", i), Claim: 1, Remote: true})
	}
	q := newQueue(c, n)
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("x", remote, queuedAt(c.now()))})
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("y", remote, queuedAt(c.now().Add(time.Second)))})
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("local")})
	nodes, reasons := placeAll(t, q, "r")
	if nodes["x"] != "a" || nodes["local"] != "a" || reasons["y"] != "0 of 1 nodes fit: a has 1000 tasks running outside of it, the maximum" {
		t.Errorf("placed are %v, waiting are %v", nodes, reasons)
	}
	release(q, "old", "each[3]", 1)
	if nodes, _ := placeAll(t, q, "r"); nodes["y"] != "a" {
		t.Errorf("after one has ended: %v", nodes)
	}
}

// TestRemoteTasksSpreadAndCountForTheirRun checks that the limit of a run's tasks on a node includes remote
// tasks, and that a remote task affects the score only for remote tasks.
func TestRemoteTasksSpreadAndCountForTheirRun(t *testing.T) {
	q := newQueue(newClock(), aNode("a", inClusters), aNode("b", inClusters))
	one := constrained(func(c *v1.Constraints) { c.MaxParallelPerNode = 1 })
	for _, task := range []string{"x", "y", "z"} {
		q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask(task, remote, one)})
	}
	nodes, reasons := placeAll(t, q, "r")
	if len(nodes) != 2 || nodes["x"] == nodes["y"] || len(reasons) != 1 {
		t.Errorf("placed are %v, waiting are %v", nodes, reasons)
	}
}
