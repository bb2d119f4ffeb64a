package words

import (
	"fmt"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// StateOrder returns the task states in the order in which counts list them.
func StateOrder() []string {
	return []string{
		v1.TaskCompleted, v1.TaskStopped, v1.TaskFailed, v1.TaskDeadLetter, v1.TaskKilledOOM, v1.TaskKilled,
		v1.TaskLost, v1.TaskRejected, v1.TaskCancelled, v1.TaskSkipped, v1.TaskRunning, v1.TaskPaused,
		v1.TaskAssigned, v1.TaskQueued, v1.TaskPending,
	}
}

// StateCount is the number of tasks or instances in a state.
type StateCount struct {
	State string
	N     int
}

// String formats the count, such as "3 completed".
func (c StateCount) String() string { return fmt.Sprintf("%d %s", c.N, c.State) }

// StateCounts returns the non-zero counts in the order of StateOrder.
func StateCounts[N int | int32](counts map[string]N) []StateCount {
	var found []StateCount
	for _, state := range StateOrder() {
		if n := counts[state]; n > 0 {
			found = append(found, StateCount{state, int(n)})
		}
	}
	return found
}

// CountStates formats counts by state, such as "3 completed, 1 failed".
func CountStates[N int | int32](counts map[string]N) string {
	var parts []string
	for _, c := range StateCounts(counts) {
		parts = append(parts, c.String())
	}
	return strings.Join(parts, ", ")
}

// Interest ranks a state by how interesting its tasks are to people; 0 is the most interesting.
func Interest(state string) int {
	switch state {
	case v1.TaskRunning, v1.TaskPaused:
		return 0
	case v1.TaskAssigned, v1.TaskQueued:
		return 2
	case v1.TaskCancelled:
		return 3
	case v1.TaskPending, "":
		return 4
	case v1.TaskSkipped:
		return 5
	case v1.TaskCompleted, v1.TaskStopped:
		return 6
	}
	return 1 // failures
}
