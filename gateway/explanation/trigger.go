package explanation

import (
	"slices"
	"strconv"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// triggers describes each value of `when` in words.
var triggers = map[string]string{
	"all_success":    "all its parents have succeeded",
	"all_done":       "all its parents have ended",
	"always":         "all its parents have ended",
	"all_failed":     "all its parents have failed",
	"one_success":    "all its parents have ended and one has succeeded",
	"one_failed":     "all its parents have ended and one has failed",
	"none_failed":    "all its parents have ended and none has failed",
	onFailureRun:     "all its parents have ended, whatever has become of them",
	conditionAlone:   "all its parents have ended",
	conditionGuarded: "all its parents have ended and none has failed that the condition does not mention",
}

// The trigger kinds of tasks without `when`.
const (
	onFailureRun     = "run"
	conditionAlone   = "condition"
	conditionGuarded = "guarded condition"
)

// startsWhen describes in words what lets a task start. mentioned lists the tasks that its condition reads. The result
// is "" for the default: all parents have ended, none has failed and one has succeeded.
func startsWhen(task *v1.TaskDefinition, mentioned []string, isInFinally bool) string {
	kind := task.GetWhen()
	isGuard := func(parent string) bool { return !slices.Contains(mentioned, parent) }
	switch {
	case kind != "" || len(task.GetDependsOn()) == 0:
	case task.GetCondition() != "" && task.GetOnFailure() != onFailureRun && slices.ContainsFunc(task.GetDependsOn(), isGuard):
		kind = conditionGuarded
	case task.GetCondition() != "":
		kind = conditionAlone
	case task.GetOnFailure() == onFailureRun:
		kind = onFailureRun
	}
	var parts []string
	if isInFinally && len(task.GetDependsOn()) == 0 {
		parts = append(parts, "all tasks outside of finally have ended")
	}
	if kind != "" {
		parts = append(parts, triggers[kind])
	}
	if task.GetCondition() != "" {
		parts = append(parts, task.GetCondition()+" is true")
	}
	return strings.Join(parts, " and ")
}

// plannedInstances returns the number of instances of a task, or the expression that gives it, or "" if the task does
// not fan out.
func plannedInstances(task *v1.TaskDefinition) string {
	fan, ok := definition.Fan(task)
	switch {
	case !ok:
		return ""
	case fan.Expression == "":
		return strconv.Itoa(fan.Count)
	case fan.Foreach:
		return "one for each of " + fan.Expression
	}
	return fan.Expression
}
