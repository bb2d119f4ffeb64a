package dag

import (
	"errors"
	"fmt"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// These errors explain why a task cannot be requeued.
var (
	ErrUnknownTask   = errors.New("the run has no such task")
	ErrCancelled     = errors.New("the run was cancelled; a cancelled run does not continue")
	ErrInFinally     = errors.New("its `finally` has begun; when the run has ended, use `runs retry`")
	ErrNotDeadLetter = errors.New("only a dead letter can be retried")
	ErrStopping      = errors.New("its task is being stopped")
)

// Rerun describes what runs again in a run that has ended. Completed tasks that it does not name are kept.
type Rerun struct {
	// Tasks holds dead letters to requeue as by Retry: tasks, or instances such as "each[3]".
	Tasks []string
	// Failed reruns everything that did not complete, even in a cancelled run. A task that has fanned out keeps its completed
	// instances.
	Failed bool
	// Skipped reruns the instances that were skipped because their task was not to start anything new, together with their
	// tasks.
	Skipped bool
	// Partitioned holds tasks whose instances other workflows run, some of which are requeued there as by Retry.
	Partitioned []string
	// Finally reruns only `finally`. What has not ended counts as cancelled.
	Finally bool
	// From holds tasks to rerun with all tasks below them, whatever their state, even in a cancelled run. They fan out anew.
	From []string
}

// Reopen returns a state that continues from records, such as those of a run that is over, and reruns part of it. State.Start
// returns the first decisions. Whatever it reruns, `finally` runs again as a whole. The instances of tasks that fan out anew are removed; the others may have a different index than
// in records. The error wraps one of those above.
func Reopen(g *Graph, records []Record, again Rerun, options ...RestoreOption) (*State, error) {
	s := Restore(g, records, options...)
	var from []int
	for _, name := range again.From {
		i, ok := g.Index(name)
		if !ok {
			return nil, fmt.Errorf("task %q: %w", name, ErrUnknownTask)
		}
		from = append(from, i)
	}
	if again.Failed || again.Skipped || len(from) > 0 {
		s.ends.tasksPhase.cancelled, s.ends.tasksPhase.aborted = false, Abort{}
	}
	if again.Finally && !s.ends.tasksPhase.isOver() {
		s.ends.tasksPhase.cancelled = true
	}
	var dead []string
	for _, name := range again.Tasks {
		i, ok := s.Index(name)
		if !ok {
			return nil, fmt.Errorf("task %q: %w", name, ErrUnknownTask)
		}
		if err := s.MayRetry(i); err != nil {
			return nil, err
		}
		dead = append(dead, name)
	}
	for _, name := range again.Partitioned {
		i, ok := g.Index(name)
		if !ok {
			return nil, fmt.Errorf("task %q: %w", name, ErrUnknownTask)
		}
		if err := s.MayRequeue(i); err != nil {
			return nil, err
		}
		dead = append(dead, name)
	}
	isAnew := again.Failed || again.Skipped || again.Finally || len(from)+len(dead) > 0
	if finally := s.ends.finally; isAnew {
		finally.cancelled, finally.aborted = false, Abort{}
		for i := finally.from; i < finally.to; i++ {
			from = append(from, i)
		}
	}
	if isAnew {
		from = s.retries.addSharers(from, dead, again)
	}
	anew := s.retries.below(from)
	s.anew = anew
	if len(from) > 0 {
		s.records.forget(anew)
	}
	what := ""
	switch {
	case again.Failed:
		what = everything
	case again.Skipped:
		what = skippedOnly
	}
	if isAnew {
		var put []int
		for _, name := range dead {
			// A dropped instance returns with its task.
			if i, ok := s.Index(name); ok && !anew[s.records.taskOf(i)] {
				put = append(put, i)
			}
		}
		s.retries.requeue(put, what, anew)
	}
	return s, nil
}

// RunsAnew reports whether Reopen has made a task or instance pending as if it had never begun.
func (s *State) RunsAnew(i int) bool { return s.anew != nil && s.anew[s.records.taskOf(i)] }

// addSharers adds to the tasks of from those that have completed in a workspace that a task that runs again shares, because the
// folder ended with the previous generation. dead names what is requeued. If only `finally` runs again, no other task is added.
func (r *retries) addSharers(from []int, dead []string, again Rerun) []int {
	var requeued []int
	for _, name := range dead {
		if i, ok := r.index(name); ok {
			requeued = append(requeued, r.taskOf(i))
		}
	}
	for {
		anew, near := r.below(from), r.below(requeued)
		used := map[string]bool{}
		for i := range anew {
			state := r.tasks[i].State
			if anew[i] || again.Failed && state != v1.TaskCompleted && state != v1.TaskStopped || near[i] && state != v1.TaskCompleted {
				used[r.node(i).def.GetWorkspace()] = true
			}
		}
		n := len(from)
		for i := range anew {
			if name := r.node(i).def.GetWorkspace(); name != "" && used[name] && !anew[i] && (!again.Finally || r.graph.IsFinally(i)) {
				from = append(from, i)
			}
		}
		if len(from) == n {
			return from
		}
	}
}

// below marks tasks and everything below them.
func (r *retries) below(tasks []int) []bool {
	marked := make([]bool, r.graph.Len())
	for _, i := range tasks {
		marked[i] = true
	}
	for i := range marked {
		marked[i] = marked[i] || slices.ContainsFunc(r.graph.nodes[i].parents, func(p int) bool { return marked[p] })
	}
	return marked
}
