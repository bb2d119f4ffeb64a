package condition

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// expectation returns that of a task after a program with retries (build), one without (once), a workflow (child) and one that has
// succeeded (done).
func expectation(kind Kind) Expectation {
	once := Outcome{States: []string{v1.TaskCompleted, v1.TaskFailed, v1.TaskLost, v1.TaskCancelled}, Prints: true, Exits: true}
	build := once
	build.States = append([]string{v1.TaskDeadLetter}, once.States...)
	tasks := map[string]Outcome{
		"deploy": build, "build": build, "once": once, "child": {States: build.States, Silent: true},
		"ask":  {States: []string{v1.TaskCompleted}, Output: []string{"region", "by", "reason"}},
		"done": {States: []string{v1.TaskCompleted}, Exits: true, Rule: ", because of its rule"},
	}
	inputs := map[string]*v1.InputDefinition{
		"stage": {Enum: []*structpb.Value{structpb.NewStringValue("prod"), structpb.NewStringValue("dev")}},
		"n":     {Type: "integer"}, "flag": {Type: "boolean"}, "hosts": {Type: "list"},
	}
	return Expectation{
		Kind: kind, Task: "deploy", Ancestors: []string{"ask", "build", "child", "done", "once"}, Tasks: []string{"ask", "build", "child", "done", "once"},
		Outcome: func(task string) Outcome { return tasks[task] },
		Input:   func(name string) *v1.InputDefinition { return inputs[name] },
	}
}

func TestDoubtsNameComparisonsWhoseResultIsAlwaysTheSame(t *testing.T) {
	for _, c := range []struct {
		kind       Kind
		expr, want string
	}{
		{Condition, "parent.build.state == 'failed'", "is 'dead_letter', not 'failed'"},
		{Condition, "parent.build.result.state == 'failed'", "is 'dead_letter', not 'failed'"},
		{Condition, "parent['build'].state != 'failed'", "is 'dead_letter', not 'failed'"},
		{Condition, "parent.build.state in ['completed', 'lost']", "is 'dead_letter', not 'lost'"},
		{Condition, "parent.build.state != 'failed' && parent.build.exitCode != 0", "is 'dead_letter'"},
		{Condition, "parent.exists(t, parent[t].state == 'failed')", "is 'dead_letter'"},
		{Condition, "['failed', 'lost'].exists(s, s == parent.build.state)", "is 'dead_letter'"},
		{Value, "parent.build.state == 'failed' ? 'bad' : 'good'", "is 'dead_letter'"},
		{Condition, "parent.once.state == 'dead_letter' || parent.once.state == 'completed'", "never 'dead_letter'"},
		{Condition, "parent.once.state != 'skipped'", "never 'skipped'"},
		{Condition, "parent.once.state in ['rejected', 'stopped']", "never 'rejected'"},
		{Condition, "parent.done.exitCode != 0", "false however done ends"},
		{Condition, "parent.done.state.startsWith('fail')", "false however done ends"},
		{Condition, "parent.once.state == 'completed' && parent.once.exitCode == 3", "false however once ends"},
		{Condition, "parent.once.state == 'completed' && parent.once.state == 'failed'", "false however once ends"},
		{Condition, "parent.build.stdout == 'heads'", "never 'heads'"},
		{Condition, "'heads' != parent.build.stderr.lowerAscii()", "never 'heads'"},
		{Condition, "parent.build.stdout in ['a', 'b']", "never 'a'"},
		{Condition, "['a', 'b'].contains(parent.build.stdout)", "never 'a'"},
		{Condition, "'x' + parent.build.stdout == 'xa'", "never 'xa'"},
		{Condition, "{'a': true}[parent.build.stdout]", "never 'a'"},
		{Condition, "parent.build.stdout.endsWith('a')", "not with 'a'"},
		{Condition, "parent.build.stdout.matches('^(a|b)+$')", "this $"},
		{Condition, "/ok$/.test(parent.build.stdout)", "this $"},
		{Condition, "int(parent.build.stdout) > 3", "int() does not accept"},
		{Count, "int(parent.build.stdout)", "int() does not accept"},
		{Retry, "attempt.stdout == 'again'", "never 'again'"},
		{Condition, "parent.child.stdout.contains('a')", "always empty"},
		{Condition, "parent.ask.output.regoin == 'eu'", "the output of ask never has a field regoin"},
		{Condition, "!has(parent['ask'].result.output.zone)", "never has a field zone"},
		{Value, "ask['zone']", "never has a field zone"},
		{Condition.InFinally(), "tasks.ask.output.zone == 'eu'", "never has a field zone"},
		{Condition.InFinally(), "'biuld' in run.failed", "the run has no task 'biuld' that could fail"},
		{Notify, "run.failed.exists(t, t == 'biuld')", "has no task 'biuld'"},
		{Notify, "['build', 'biuld'].exists(t, t in run.failed)", "has no task 'biuld'"},
		{Notify, "run.failed == ['build', 'biuld']", "has no task 'biuld'"},
		{Condition, "workflow.input.stage == 'production'", "never 'production'"},
		{Condition, "workflow.input['n'] == '3'", "has the type integer"},
		{Condition, "workflow.input.flag != 'true'", "has the type boolean"},
		{Condition, "workflow.input.stage in ['dev', 'test']", "never 'test'"},
	} {
		found := Doubts(c.expr, expectation(c.kind))
		if len(found) == 0 || !strings.Contains(found[0].Message, c.want) || found[0].Hint == "" {
			t.Errorf("%s: %v, want %q", c.expr, found, c.want)
		}
	}
}

func TestSoundComparisonsAreNotDoubted(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		expr string
	}{
		{Condition, "parent.build.state in ['failed', 'dead_letter']"},
		{Condition, "parent.build.state == 'failed' || parent.build.state == 'dead_letter'"},
		{Condition, "parent.build.state == 'failed' || parent.build.exitCode != 0"},
		{Condition, "parent.exists(t, parent[t].state == 'failed' || parent[t].exitCode > 0)"},
		{Condition, "parent.build.state != 'completed'"},
		{Condition, "parent.build.state == 'dead_letter'"},
		{Condition, "parent.build.state == 'completed' && parent.build.exitCode == 0"},
		{Condition, "parent.once.state == 'failed'"},
		{Condition, "parent.once.state in ['failed', 'dead_letter', 'killed_oom']"},
		{Condition, "parent.once.state in ['completed', 'stopped']"},
		{Condition, "parent.once.exitCode == 3"},
		{Condition, "parent.build.output.state == 'done'"},
		{Condition, "parent.build.stdout == '' || parent.build.stdout == 'heads\\n'"},
		{Condition, "parent.build.stdout.trim() == 'heads' && parent.build.stdout.contains('h') && parent.build.stdout.startsWith('he')"},
		{Condition, "parent.build.stdout.matches('(?m)^ok$') || parent.build.stdout.matches('ok\\\\s*$') || parent.build.stdout.matches('(?s)a.*$')"},
		{Condition, "parent.build.stdout.matches('(a$|b)') || parent.build.stdout.matches('[^a]$') || parent.build.stdout.matches('a$|b')"},
		{Condition, "int(parent.build.stdout.trim()) > 3 && 'heads tails'.contains(parent.build.stdout.trim())"},
		{Condition, "workflow.input.stage == 'dev' && workflow.input.n == 3 && workflow.input.flag == true && 'a' in workflow.input.hosts"},
		{Condition, "workflow.input.n == 3.0 && workflow.input.other == 'x' && workflow.input.stage != null"},
		{Retry, "attempt.stdout.contains('again') && attempt.state == 'failed'"},
		{Condition, "parent.ask.output.region == 'eu' || parent.build.output.zone == 'eu' || parent.ask.output.by == 'ann'"},
		{Value, "ask.region"},
		{Notify, "'build' in run.failed || run.failed.exists(t, t == 'once' || t.startsWith('x')) || size(run.failed) > 1"},
		{Condition.InFinally(), "run.state == 'failed' || run.state in ['cancelled']"},
		{Value, "parent.build.state"},
		{Value, "parent.build.state == 'completed' ? 'good' : 'bad'"},
	} {
		if found := Doubts(c.expr, expectation(c.kind)); len(found) > 0 {
			t.Errorf("%s: %v", c.expr, found)
		}
	}
}
