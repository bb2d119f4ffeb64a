package definition

import (
	"maps"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

const (
	// finallyTaskTimeout is the longest time that one attempt of a task in `finally` may run, unless the task sets another time.
	finallyTaskTimeout = "10m"
	// defaultFinallyTimeout is the longest time that `finally` may take, unless the definition sets another time.
	defaultFinallyTimeout = time.Hour
)

// FinallyTimeout returns the longest time that all of `finally` may take; 0 means no limit.
func FinallyTimeout(def *v1.Definition) time.Duration {
	if def.GetFinallyTimeout() == "" {
		return defaultFinallyTimeout
	}
	return duration(def.GetFinallyTimeout())
}

// finallyRules checks what concerns `finally` as a whole.
type finallyRules struct{ *decoder }

// warnOfLast warns about tasks that are to run at the end of a run in any case, and do not run if the run is cancelled.
func (r finallyRules) warnOfLast(def *v1.Definition) {
	isParent := map[string]bool{}
	for _, task := range def.GetTasks() {
		for _, parent := range task.GetDependsOn() {
			isParent[parent] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		if p := r.base.Field("tasks").Key(name).Field("when"); def.GetTasks()[name].GetWhen() == "always" && !isParent[name] {
			r.Warn(r.locate(p), p, "when: always does not start "+name+" if the run is cancelled or misses its deadline", "move it to finally, which runs however the run ends")
		}
	}
}

func (r finallyRules) check(def *v1.Definition) {
	timeout := r.base.Field("finallyTimeout")
	r.duration(def.GetFinallyTimeout(), timeout)
	finally := r.base.Field("finally")
	switch {
	case len(def.GetFinally()) > 0 || r.IsSettled(finally):
	case r.nodeAt(finally) != nil:
		r.Add(r.locate(finally), finally, "finally is empty", "give it a task, or leave it out")
	case def.GetFinallyTimeout() != "":
		r.Add(r.locateKey(timeout), timeout, "finallyTimeout has no effect without finally", "")
	}
	for _, name := range slices.Sorted(maps.Keys(def.GetFinally())) {
		if p := r.base.Field("finally").Key(name); def.GetTasks()[name] != nil {
			r.Add(r.locateKey(p), p, "tasks has a task "+source.Quote(name)+", too; names are unique over tasks and finally", "choose another name for one of them")
		}
	}
	r.warnOfLast(def)
}
