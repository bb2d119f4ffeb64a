package gateway

import v1 "switchyard/proto/switchyard/v1"

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
	// printed: its newest attempt has ended and printed something. printers are the numbers of the instances that have
	// changed of which that is true.
	printed  bool
	printers []int32
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
			changed := taskNews{name: name, task: t.brief, claim: t.claim, printed: hasPrinted(t.task)}
			for _, i := range t.instances[:min(len(t.instances), shownInstances)] {
				if i != nil && i.version > version {
					changed.instances = append(changed.instances, i.brief)
					if hasPrinted(i.instance) {
						changed.printers = append(changed.printers, i.instance.GetIndex())
					}
				}
			}
			n.tasks = append(n.tasks, changed)
		}
	}
	return n
}

// hasPrinted reports whether the newest attempt of a task or an instance has ended and printed something itself.
func hasPrinted(t interface {
	GetState() string
	GetCachedFrom() string
	GetResult() *v1.TaskResult
}) bool {
	r := t.GetResult()
	return taskEnded(t.GetState()) && t.GetCachedFrom() == "" &&
		(r.GetStdout() != "" || r.GetStderr() != "" || r.GetStdoutTruncated() || r.GetStderrTruncated())
}
