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
	Finally     map[string]taskSpec `json:"finally,omitempty"`
	Concurrency map[string]any      `json:"concurrency,omitempty"`
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

// job describes the work of a task of a drill.
type job struct {
	ticks  int     // number of ticks that it works
	tick   float64 // length of a tick in seconds; 0 means 0.1
	gate   string  // file that must exist before the task ends; may be an expression
	tree   bool    // leaves processes that are hard to end
	deaf   bool    // continues after SIGTERM
	fails  int     // number of attempts that fail
	once   string  // file whose absence makes an attempt create it and fail
	counts bool    // continues from its checkpoint
	after  []string
	node   string // node that it is pinned to
	label  string // label that its node must have
	last   string // shell command that runs at its end

	instances int // 0 means no fan-out
	batch     any // batch size, or "auto"
	mutex     string
	semaphore map[string]any
}

// backoffMs is the back-off before each retry of a drill's task, in ms.
const backoffMs = 200

// taskCommand runs the program of a drill's tasks.
const taskCommand = `sh "$CHAOS_DIR/task.sh"`

// task returns the definition of the shell task that performs a job.
func (y *Cluster) task(j job) taskSpec {
	t := taskSpec{
		Type: "shell",
		Spec: map[string]any{"command": taskCommand},
		Env: map[string]string{
			"CHAOS_DIR": y.Dir, clusterVariable: y.Dir, "CHAOS_TICKS": strconv.Itoa(j.ticks), "CHAOS_GATE": j.gate, "CHAOS_FAILS": strconv.Itoa(j.fails),
		},
		DependsOn: j.after,
		// The tasks reserve no cores, so that a small machine can run many tasks that do little work.
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
	if j.deaf {
		t.Env["CHAOS_DEAF"] = "1"
	}
	if j.node != "" {
		t.Constraints = map[string]any{"targetNode": j.node}
	}
	if j.label != "" {
		t.Constraints = map[string]any{"nodeLabels": []string{j.label}}
	}
	return t
}

// crowd returns a workflow of n identical parallel tasks.
func (y *Cluster) crowd(name string, n int, j job) definition {
	d := definition{Name: name, Tasks: map[string]taskSpec{}}
	for i := range n {
		d.Tasks[fmt.Sprintf("t%d", i)] = y.task(j)
	}
	return d
}

// childRun returns a task that runs a workflow.
func childRun(d definition, after ...string) taskSpec {
	return taskSpec{Type: "run", Spec: map[string]any{"definition": d}, DependsOn: after}
}

// namesOf returns the names of the tasks, sorted.
func namesOf(d definition) []string { return slices.Sorted(maps.Keys(d.Tasks)) }
