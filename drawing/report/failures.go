package report

import (
	v1 "switchyard/proto/switchyard/v1"

	"switchyard/drawing/words"
	"switchyard/workflows/names"
)

// FailuresOf returns the first MaxFailures tasks of a run that failed, in the given
// order, each followed by its instances that failed, and how many there are in all.
// failed has the failed instances of tasks, all of them or the first MaxFailures.
func FailuresOf(run *v1.Run, order []string, failed map[string][]*v1.Instance) (shown []Failure, count int) {
	for _, name := range order {
		t := run.GetTasks()[name]
		if v1.HasTaskFailed(t) {
			count++
			shown = append(shown, Failure{Name: name, Task: t})
		}
		instances := 0
		for state, n := range t.GetCounts() {
			if v1.IsTaskFailure(state) {
				instances += int(n)
			}
		}
		count += max(instances, len(failed[name]))
		for _, i := range failed[name] {
			shown = append(shown, Failure{Name: names.InstanceName(name, int(i.GetIndex())), Task: words.InstanceTask(t, i)})
		}
		shown = shown[:min(len(shown), MaxFailures)]
	}
	return shown, count
}
