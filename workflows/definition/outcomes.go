package definition

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// outcomes says how the tasks of a definition end.
type outcomes struct {
	def       *v1.Definition
	skippable map[string]bool
}

// ofTask returns how a task may end.
func (o *outcomes) ofTask(name string) condition.Outcome {
	task := v1.TaskNamed(o.def, name)
	_, fansOut := Fan(task)
	onNode := v1.NeedsNode(task.GetType())
	can := map[string]bool{
		v1.TaskCompleted:  true,
		v1.TaskFailed:     true,
		v1.TaskCancelled:  true,
		v1.TaskKilled:     true,
		v1.TaskStopped:    v1.Lasts(task.GetType()) && !fansOut,
		v1.TaskSkipped:    fansOut || o.isSkippable(name),
		v1.TaskKilledOOM:  onNode && !fansOut,
		v1.TaskLost:       onNode || fansOut,
		v1.TaskDeadLetter: mayBeDeadLetter(task) && !fansOut,
		v1.TaskRejected:   task.GetType() == v1.TypeApproval && !fansOut,
	}
	end := condition.Outcome{}
	for _, state := range v1.TaskEndStates() {
		if can[state] {
			end.States = append(end.States, state)
		}
	}
	switch task.GetType() {
	case v1.TypeApproval:
		end.Silent, end.Output = !fansOut, slices.Concat(slices.Sorted(maps.Keys(Approval(task).GetInputs())), DecisionFields())
	case v1.TypeRun:
		end.Silent = !fansOut
	case v1.TypeShell, v1.TypeContainer, v1.TypeK8sJob:
		end.Exits = !fansOut
		end.Prints = end.Exits && printsLines(task)
	}
	return end
}

// mayBeDeadLetter reports whether a task is retried.
func mayBeDeadLetter(task *v1.TaskDefinition) bool {
	retry := task.GetRetry()
	isRetried := retry == nil || retry.MaxRetries == nil || retry.GetMaxRetries() > 0
	return isRetried && (retry == nil || retry.Retryable == nil || retry.GetRetryable()) && !v1.Lasts(task.GetType()) && task.GetType() != v1.TypeApproval
}

// withoutNewline matches what often makes a program print a text that does not end with a newline.
var withoutNewline = lazyPattern(`\bprintf\b|\becho\s+-\w*n|\btr\s+-d|\bend\s*=|\.write\(|\bjq\s+-\w*j|\bhead\s+-c|\bperl\b|\bcurl\b|\bwget\b|jsonpath|-w\s*0`)

// printsLines reports whether the last line that the command of a task prints ends with a newline, like that of most programs.
func printsLines(task *v1.TaskDefinition) bool {
	for _, text := range texts(structpb.NewStructValue(task.GetSpec()), nil) {
		if withoutNewline().MatchString(text) {
			return false
		}
	}
	return task.GetSpec().GetFields()[string(commandField)] != nil
}

// isSkippable reports whether a task may be skipped.
func (o *outcomes) isSkippable(name string) bool {
	if known, ok := o.skippable[name]; ok {
		return known
	}
	o.skippable[name] = true // also on a cycle
	task := v1.TaskNamed(o.def, name)
	is := true
	switch isConditional := task.GetCondition() != ""; {
	case isConditional:
	case task.GetWhen() == "always", task.GetWhen() == "all_done", task.GetOnFailure() == "run":
		is = false
	case task.GetWhen() != "", o.def.GetFailurePolicy() == "halt":
	default:
		is = slices.ContainsFunc(task.GetDependsOn(), func(parent string) bool {
			return !v1.TaskNamed(o.def, parent).GetContinueOnError() || o.isSkippable(parent)
		})
	}
	o.skippable[name] = is
	return is
}

// seenBy returns how a task may have ended when an expression of another task is evaluated. decides is set for a condition, and
// mentioned holds the tasks that the condition reads.
func (o *outcomes) seenBy(reader string, decides bool, mentioned []string, name string) condition.Outcome {
	end := o.ofTask(name)
	task := v1.TaskNamed(o.def, reader)
	if !slices.Contains(task.GetDependsOn(), name) {
		return end
	}
	isOnly := len(task.GetDependsOn()) == 1
	success, neutral, failure := true, true, true
	rule := "the task has when: " + task.GetWhen()
	switch task.GetWhen() {
	case "all_success":
		neutral, failure = false, false
	case "none_failed":
		failure = false
	case "all_failed":
		success, neutral = false, false
	case "one_success":
		neutral, failure = !isOnly, !isOnly
	case "one_failed":
		success, neutral = !isOnly, !isOnly
	case "":
		if task.GetOnFailure() == "run" || decides || slices.Contains(mentioned, name) {
			return end
		}
		rule = "the task starts only if none has failed"
		neutral, failure = !isOnly || task.GetCondition() != "", false
	}
	excused := v1.TaskNamed(o.def, name).GetContinueOnError()
	all := len(end.States)
	end.States = slices.DeleteFunc(end.States, func(state string) bool {
		switch {
		case v1.IsTaskSuccess(state), excused && state != v1.TaskSkipped:
			return !success
		case state == v1.TaskSkipped:
			return !neutral && !failure
		}
		return !failure
	})
	if len(end.States) < all {
		end.Rule = ", because " + rule
	}
	return end
}
