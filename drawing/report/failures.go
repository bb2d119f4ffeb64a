package report

import (
	v1 "switchyard/proto/switchyard/v1"

	"switchyard/workflows/names"
)

// FailuresOf returns the first MaxFailures failed tasks of a run in the given order, each followed
// by its failed instances, and the total number of failures. failed holds the failed instances of
// tasks, at least the first MaxFailures of each.
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
			shown = append(shown, Failure{Name: names.InstanceName(name, int(i.GetIndex())), Task: v1.InstanceTask(t, i)})
		}
		shown = shown[:min(len(shown), MaxFailures)]
	}
	return shown, count
}
