package runview

import (
	"cmp"
	"maps"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// mergeAnswers merges the partial responses of a run to one status. Later responses are newer. The status shares tasks with
// them.
func mergeAnswers(answers []*historyv1.StatusResponse) *historyv1.StatusResponse {
	all := &historyv1.StatusResponse{Run: &v1.Run{}, Records: map[string]string{}, Claims: map[string]int32{}, Checkpoints: map[string]*historyv1.Checkpoint{}}
	tasks := map[string]*v1.Task{}
	for _, a := range answers {
		run := headerOf(a.GetRun())
		run.Context, run.Input = all.Run.GetContext(), all.Run.GetInput()
		if a.GetRun().GetContext() != nil {
			run.Context = a.GetRun().GetContext()
		}
		if a.GetRun().GetInput() != nil {
			run.Input = a.GetRun().GetInput()
		}
		all.Run, all.Revision, all.TaskCount, all.Chain = run, a.GetRevision(), a.GetTaskCount(), a.GetChain()
		if len(a.GetPartitions()) > 0 {
			all.Partitions = a.GetPartitions()
		}
		for name, task := range a.GetRun().GetTasks() {
			tasks[name] = addInstances(task, tasks[name].GetInstances())
			copyClaim(all, a, name)
			for _, i := range task.GetInstances() {
				copyClaim(all, a, names.InstanceName(name, int(i.GetIndex())))
			}
		}
	}
	all.Run.Tasks = tasks
	return all
}

// copyClaim copies the record, claim and checkpoint of a task or instance from a to all.
func copyClaim(all, a *historyv1.StatusResponse, name string) {
	delete(all.Records, name)
	if record := a.GetRecords()[name]; record != "" {
		all.Records[name] = record
	}
	delete(all.Claims, name)
	if claim := a.GetClaims()[name]; claim != 0 {
		all.Claims[name] = claim
	}
	delete(all.Checkpoints, name)
	if checkpoint := a.GetCheckpoints()[name]; checkpoint != nil {
		all.Checkpoints[name] = checkpoint
	}
}

// addInstances returns a task with the instances of earlier responses added.
func addInstances(task *v1.Task, earlier []*v1.Instance) *v1.Task {
	if len(earlier) == 0 {
		return task
	}
	all := map[int32]*v1.Instance{}
	for _, i := range slices.Concat(earlier, task.GetInstances()) {
		all[i.GetIndex()] = i
	}
	task = CopyWithoutInstances(task)
	task.Instances = slices.SortedFunc(maps.Values(all), func(a, b *v1.Instance) int { return cmp.Compare(a.GetIndex(), b.GetIndex()) })
	return task
}
