package drill

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// definition is a workflow of a drill in its JSON form.
type definition struct {
	Name        string              `json:"name"`
	Tasks       map[string]taskSpec `json:"tasks"`
	Concurrency map[string]any      `json:"concurrency,omitempty"`
	// FailurePolicy is halt, or empty: continue.
	FailurePolicy string `json:"failurePolicy,omitempty"`
}

type taskSpec struct {
	Type        string            `json:"type"`
	Spec        map[string]any    `json:"spec"`
	Env         map[string]string `json:"env,omitempty"`
	DependsOn   []string          `json:"dependsOn,omitempty"`
	Constraints map[string]any    `json:"constraints,omitempty"`
	Resources   map[string]any    `json:"resources,omitempty"`
	Retry       map[string]any    `json:"retry,omitempty"`
	Condition   string            `json:"condition,omitempty"`
	Parallel    int               `json:"parallel,omitempty"`
	ForEach     string            `json:"foreach,omitempty"`
	Batch       any               `json:"batch,omitempty"`
	Mutex       string            `json:"mutex,omitempty"`
	Semaphore   map[string]any    `json:"semaphore,omitempty"`
}

// job is what a task of a drill does.
type job struct {
	ticks  int     // how long it works
	tick   float64 // seconds that one tick lasts; 0: 0.1
	gate   string  // file that must exist before it ends; an expression may say which
	tree   bool    // leaves processes that are hard to end
	fails  int     // attempts that fail
	once   string  // file without which it fails, after it has made it
	counts bool    // continues from its checkpoint
	after  []string
	node   string // that it is pinned to
	label  string // that its node must have
	last   string // shell command that follows at its end

	instances int // 0: it does not fan out
	batch     any // instances in a batch, or "auto"
	mutex     string
	semaphore map[string]any
}

// backoffMs is the time in ms before each retry of a task of a drill.
const backoffMs = 200

// task returns the task that does a job.
func (y *Cluster) task(j job) taskSpec {
	t := taskSpec{
		Type: "shell",
		Spec: map[string]any{"command": `sh "$CHAOS_DIR/task.sh"`},
		Env: map[string]string{
			"CHAOS_DIR": y.Dir, clusterVariable: y.Dir, "CHAOS_TICKS": strconv.Itoa(j.ticks), "CHAOS_GATE": j.gate, "CHAOS_FAILS": strconv.Itoa(j.fails),
		},
		DependsOn: j.after,
		// Not counted, so that a small machine runs a crowd of tasks that hardly work.
		Resources: map[string]any{"cores": 0},
		Retry:     map[string]any{"maxRetries": 5, "backoffMs": backoffMs, "backoffMultiplier": 1},
		Parallel:  j.instances, Batch: j.batch, Mutex: j.mutex, Semaphore: j.semaphore,
	}
	if j.last != "" {
		t.Spec["command"] = fmt.Sprint(t.Spec["command"], " && ", j.last)
	}
	if j.once != "" {
		t.Env["CHAOS_ONCE"] = j.once
	}
	if j.counts {
		t.Env["CHAOS_COUNTS"] = "1"
	}
	if j.tick > 0 {
		t.Env["CHAOS_TICK"] = fmt.Sprint(j.tick)
	}
	if j.tree {
		t.Env["CHAOS_TREE"] = "1"
	}
	if j.node != "" {
		t.Constraints = map[string]any{"targetNode": j.node}
	}
	if j.label != "" {
		t.Constraints = map[string]any{"nodeLabels": []string{j.label}}
	}
	return t
}

// crowd is a workflow of n tasks that do the same side by side.
func (y *Cluster) crowd(name string, n int, j job) definition {
	d := definition{Name: name, Tasks: map[string]taskSpec{}}
	for i := range n {
		d.Tasks[fmt.Sprintf("t%d", i)] = y.task(j)
	}
	return d
}

// childRun is a task that runs a workflow.
func childRun(d definition, after ...string) taskSpec {
	return taskSpec{Type: "run", Spec: map[string]any{"definition": d}, DependsOn: after}
}

// approval is a task that waits for a person.
func approval(after ...string) taskSpec {
	return taskSpec{Type: "approval", Spec: map[string]any{"message": "go on?"}, DependsOn: after}
}

// namesOf returns the names of the tasks, sorted.
func namesOf(d definition) []string { return slices.Sorted(maps.Keys(d.Tasks)) }
