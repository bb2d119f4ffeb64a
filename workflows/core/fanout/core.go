package fanout

import (
	"fmt"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// NewCore returns the core of a run, or of a partition, that begins.
func NewCore(c flight.Config, graph *dag.Graph) *dag.State {
	if claim := c.Input.GetPartition().GetClaim(); claim > 0 {
		return dag.Restore(graph, []dag.Record{{State: v1.TaskPending, ExitCode: -1, Claim: claim}})
	}
	return dag.New(graph)
}

// RestoreCore returns the core that continues from the state that the previous execution or generation left. tasks holds the
// states of its tasks and instances by name. RestoreCore adds to them what runs again.
func RestoreCore(c flight.Config, graph *dag.Graph, left *historyv1.RunState, tasks map[string]*historyv1.TaskState) (*dag.State, error) {
	part, again := c.Input.GetPartition(), rerun(c)
	options := []dag.RestoreOption{dag.WithRunState(left)}
	records := make([]dag.Record, graph.Len())
	for i := range graph.Len() {
		name := graph.Name(i)
		t := tasks[name]
		if t == nil {
			continue
		}
		records[i] = dag.RecordOf(t)
		from, count, isPartitioned := 0, int(t.GetTask().GetCount()), len(t.GetPartitions()) > 0
		if part != nil {
			from, count = int(part.GetFrom()), int(part.GetTo()-part.GetFrom())
		}
		if t.GetTask().Count == nil || count == 0 || isPartitioned && records[i].State == v1.TaskPending ||
			!isPartitioned && isLarge(c, graph.Definition(i), count) { // its instances are no longer known
			continue
		}
		options = append(options, dag.WithExpansion(i, from, count, isPartitioned))
		if isPartitioned {
			continue
		}
		for number := from; number < from+count; number++ {
			var rec dag.Record
			if t := tasks[names.InstanceName(name, number)]; t != nil {
				rec = dag.RecordOf(t)
			}
			records = append(records, rec)
		}
	}
	if part != nil {
		again.Tasks = deadLettersAmong(again.Tasks, tasks)
		halted := left.GetHaltReason()
		if c.Input.GetState() == nil {
			halted = part.GetHaltReason()
		}
		options = append(options, dag.WithHaltedGroup(0, halted))
	} else {
		again.Tasks, again.Partitioned = partitionedTasks(again.Tasks, tasks)
	}
	core, err := dag.Reopen(graph, records, again, options...)
	if err != nil {
		return nil, fmt.Errorf("continue the run: %w", err)
	}
	for i := range core.Len() {
		if t := tasks[core.Name(i)]; core.RunsAnew(i) && t != nil && !v1.IsTaskTerminal(core.Task(i).State) {
			t.Checkpoint = nil // the task starts again from its beginning
		}
	}
	return core, nil
}

// rerun returns what this generation reruns. It is empty for an execution that continues from one of the same generation.
func rerun(c flight.Config) dag.Rerun {
	if c.Input.GetState() != nil {
		return dag.Rerun{}
	}
	again := c.Input.GetRerun()
	return dag.Rerun{Tasks: c.Input.GetRetry(), Failed: again.GetFailed(), Skipped: again.GetSkipped(), From: again.GetFrom(), Finally: again.GetFinallyOnly()}
}

// deadLettersAmong returns the instances that are dead letters in the state that their partition left.
func deadLettersAmong(all []string, tasks map[string]*historyv1.TaskState) (letters []string) {
	for _, name := range all {
		if tasks[name].GetTask().GetState() == v1.TaskDeadLetter {
			letters = append(letters, name)
		}
	}
	return letters
}

// partitionedTasks separates the names of instances in partitions from the names that the run itself holds. It returns each
// task of such instances once and adds the instances to the task's state.
func partitionedTasks(all []string, tasks map[string]*historyv1.TaskState) (own, remote []string) {
	for _, name := range all {
		task, number, ok := names.ParseInstanceName(name)
		t := tasks[task]
		if !ok || len(t.GetPartitions()) == 0 {
			own = append(own, name)
			continue
		}
		t.Requeued = append(t.Requeued, int32(number))
		if !slices.Contains(remote, task) {
			remote = append(remote, task)
		}
	}
	return own, remote
}
