package gateway

import (
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// news is what has changed in a run.
type news struct {
	run     *v1.Run // without tasks; context and input only when they have changed
	home    string  // where it keeps what it stores
	tasks   []taskNews
	counts  map[string]int32
	total   int32
	version int64           // ask for what is newer than this next time
	done    bool            // there will be no more
	err     error           // why there will be no more, if the run has not ended
	changed <-chan struct{} // closed when there is more
}

type taskNews struct {
	name  string
	task  *v1.Task // as watchers see it, without instances
	claim int32
	// printer is the attempt that printed what its result holds, or nil if it has not ended or nothing was printed.
	// printers are those of the instances that have changed, by number.
	printer  *printer
	printers map[int32]printer
	// instances are those that have changed, by number, of the first shownInstances.
	instances []*v1.Instance
}

// shownInstances is how many instances of a task are shown with it; the others are listed.
const shownInstances = 1000

// since returns what is newer than a version; 0: everything.
func (v *view) since(version int64) news {
	n := news{version: v.newest, total: v.total, run: headerOf(v.run), home: v.home()}
	if n.version <= version {
		return n
	}
	n.counts = v.counts()
	if v.contextVersion > version {
		n.run.Context, n.run.Input = v.run.Context, v.run.Input
	}
	for _, name := range v.names {
		if t := v.tasks[name]; t.version > version {
			changed := taskNews{name: name, task: t.brief, claim: t.claim, printer: printerOf(t.task, t.record)}
			for _, i := range t.instances[:min(len(t.instances), shownInstances)] {
				if i != nil && i.version > version {
					changed.instances = append(changed.instances, i.brief)
					if p := printerOf(i.instance, i.record); p != nil {
						if changed.printers == nil {
							changed.printers = map[int32]printer{}
						}
						changed.printers[i.instance.GetIndex()] = *p
					}
				}
			}
			n.tasks = append(n.tasks, changed)
		}
	}
	return n
}

// printer is an attempt that has printed something.
type printer struct {
	attempt int32
	node    string
}

// printerOf returns the attempt that printed what the result of a task or an instance holds, or nil if it has not ended
// or this run printed nothing. An attempt that was answered by the record of an earlier one printed nothing itself.
func printerOf(t interface {
	GetState() string
	GetCachedFrom() string
	GetAttempt() int32
	GetNode() string
	GetResult() *v1.TaskResult
}, record string) *printer {
	r := t.GetResult()
	if !v1.IsTaskTerminal(t.GetState()) || t.GetCachedFrom() != "" ||
		r.GetStdout() == "" && r.GetStderr() == "" && !r.GetStdoutTruncated() && !r.GetStderrTruncated() {
		return nil
	}
	p := &printer{t.GetAttempt(), t.GetNode()}
	if attempt, ok := store.ParseResultKey(record); ok {
		p.attempt = attempt
	}
	return p
}
