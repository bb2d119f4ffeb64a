package runview

import (
	"slices"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// Delta holds the changes of a run since a version of its view.
type Delta struct {
	Run     *v1.Run // without tasks; context and input only if they have changed
	Home    string  // prefix of the run's keys in the store
	Tasks   []TaskDelta
	total   int32
	Version int64           // version to pass to Since next
	Done    bool            // there will be no more changes
	Err     error           // why there will be no more changes, if the run has not ended
	Changed <-chan struct{} // closed at the next change
	History int64           // length of the run's history, which also grows without a change of the view
}

// TaskDelta is a changed task in a Delta.
type TaskDelta struct {
	Name  string
	Task  *v1.Task // as watchers see it, without instances
	Claim int32
	// Printer is the attempt that printed the output in the task's result, or nil if the task has not ended or printed
	// nothing. Printers has the same for changed instances, by number.
	Printer  *Printer
	Printers map[int32]Printer
	// Retried is the newest ended attempt that counts of a task that has not ended, or nil if that attempt printed nothing.
	Retried *v1.Attempt
	// Instances holds the changed ones among the first ShownInstances instances, by number.
	Instances []*v1.Instance
}

// ShownInstances is the number of instances that are shown with a task. Lists have the rest.
const ShownInstances = 1000

// Since returns the changes after a version, or everything if version is 0.
func (v *View) Since(version int64) Delta {
	n := Delta{Version: v.newest, total: v.total, Run: v.Header(), Home: v.Home()}
	if n.Version <= version {
		return n
	}
	if v.contextVersion > version {
		n.Run.Context, n.Run.Input = v.Run.Context, v.Run.Input
	}
	for _, name := range v.Names {
		if t := v.Tasks[name]; t.version > version {
			changed := TaskDelta{Name: name, Task: t.Brief, Claim: t.Claim, Printer: printerOf(t.Task, t.Record), Retried: retriedOf(t.Task)}
			for _, i := range t.Instances[:min(len(t.Instances), ShownInstances)] {
				if i != nil && i.version > version {
					changed.Instances = append(changed.Instances, i.Brief)
					if p := printerOf(i.Instance, i.Record); p != nil {
						if changed.Printers == nil {
							changed.Printers = map[int32]Printer{}
						}
						changed.Printers[i.Instance.GetIndex()] = *p
					}
				}
			}
			n.Tasks = append(n.Tasks, changed)
		}
	}
	return n
}

// Printer is an attempt that has printed output.
type Printer struct {
	Attempt int32
	Node    string
	// Recorded reports whether the result has a record. Generation is then that of the record.
	Recorded   bool
	Generation int32
}

// printerOf returns the attempt that printed the output in the result of a task or instance, or nil if it has not ended
// or this run printed nothing. An attempt that reused the record of an earlier one has printed nothing itself.
func printerOf(t interface {
	GetState() string
	GetNotice() string
	GetCachedFrom() string
	GetAttempt() int32
	GetNode() string
	GetResult() *v1.TaskResult
}, record string) *Printer {
	// The result of a task without a node is that of an earlier generation.
	if !v1.HasTaskEnded(t) || t.GetCachedFrom() != "" || t.GetNode() == "" || !hasOutput(t.GetResult()) {
		return nil
	}
	p := &Printer{Attempt: t.GetAttempt(), Node: t.GetNode()}
	if generation, attempt, ok := storekey.ParseResult(record); ok {
		p.Attempt, p.Recorded, p.Generation = attempt, true, generation
	}
	return p
}

// retriedOf returns the last attempt that counts of a task that has not ended, if its result has output, and nil otherwise.
func retriedOf(t *v1.Task) *v1.Attempt {
	if v1.HasTaskEnded(t) || !hasOutput(t.GetResult()) {
		return nil
	}
	for _, a := range slices.Backward(t.GetAttempts()) {
		if a.GetState() != v1.AttemptMoved {
			return a
		}
	}
	return nil
}

func hasOutput(r *v1.TaskResult) bool {
	return r.GetStdout() != "" || r.GetStderr() != "" || r.GetStdoutTruncated() || r.GetStderrTruncated()
}
