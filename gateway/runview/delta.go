package runview

import (
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// Delta is what has changed in a run since a version of its view.
type Delta struct {
	Run     *v1.Run // without tasks; context and input only when they have changed
	Home    string  // where it keeps what it stores
	Tasks   []TaskDelta
	total   int32
	Version int64           // ask for what is newer than this next time
	Done    bool            // there will be no more
	Err     error           // why there will be no more, if the run has not ended
	Changed <-chan struct{} // closed when there is more
	History int64           // length of the history of the run; what does not change the view makes it grow, too
}

// TaskDelta is a task of a Delta that has changed.
type TaskDelta struct {
	Name  string
	Task  *v1.Task // as watchers see it, without instances
	Claim int32
	// Printer is the attempt that printed what its result holds, or nil if it has not ended or nothing was printed.
	// Printers are those of the instances that have changed, by number.
	Printer  *Printer
	Printers map[int32]Printer
	// Instances are those that have changed, by number, of the first ShownInstances.
	Instances []*v1.Instance
}

// ShownInstances is how many instances of a task are shown with it; the others are listed.
const ShownInstances = 1000

// Since returns what is newer than a version, or everything if the version is 0.
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
			changed := TaskDelta{Name: name, Task: t.Brief, Claim: t.Claim, Printer: printerOf(t.Task, t.Record)}
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

// Printer is an attempt that has printed something.
type Printer struct {
	Attempt int32
	Node    string
	// Recorded reports whether the result is recorded, and Generation is then that of the record.
	Recorded   bool
	Generation int32
}

// printerOf returns the attempt that printed what the result of a task or an instance holds, or nil if it has not ended
// or this run printed nothing. An attempt that was answered by the record of an earlier one printed nothing itself.
func printerOf(t interface {
	GetState() string
	GetNotice() string
	GetCachedFrom() string
	GetAttempt() int32
	GetNode() string
	GetResult() *v1.TaskResult
}, record string) *Printer {
	r := t.GetResult()
	if !v1.HasTaskEnded(t) || t.GetCachedFrom() != "" ||
		r.GetStdout() == "" && r.GetStderr() == "" && !r.GetStdoutTruncated() && !r.GetStderrTruncated() {
		return nil
	}
	p := &Printer{Attempt: t.GetAttempt(), Node: t.GetNode()}
	if generation, attempt, ok := storekey.ParseResult(record); ok {
		p.Attempt, p.Recorded, p.Generation = attempt, true, generation
	}
	return p
}
