package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestGangRunsTogether checks that the members of a gang run on nodes of their own and know each other, that the failure of one ends
// and retries all, and that people steer the task, not a member.
func TestGangRunsTogether(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"train": {{Block: true}, {Block: true}, fake.Exit(7), {}}, // in the order of their starts
	})
	for _, name := range []string{"a", "b", "c"} {
		c.Start(name)
	}
	h := c.Submit(c.Input(fmt.Sprintf(`{name: gang-%s, tasks: {
		train: {type: shell, spec: {command: x}, gang: {size: 3, perNode: 1}, resources: {cores: 0}, retry: {maxRetries: 2, backoffMs: 1}},
		after: {type: shell, spec: {command: x}, dependsOn: [train], condition: "parent.train.completed == 3"},
		ask: {type: approval, dependsOn: [after], spec: {message: "Enough?"}}}}`, c.Label)))
	h.AwaitTask("ask", func(task *v1.Task) bool { return task.GetState() == v1.TaskPaused })
	refused := sendUpdate(h, names.KillTaskUpdate, &historyv1.TaskCommand{Task: "train[0]", By: "ann"})
	if want := "train[0] is a member of the gang of task train; name the task"; refused == nil || !strings.Contains(refused.Error(), want) {
		t.Errorf("a command for a member: %v", refused)
	}
	if err := sendUpdate(h, names.ApproveUpdate, &historyv1.TaskCommand{Task: "ask", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"train": "completed", "after": "completed", "ask": "completed"})
	var nodes, ranks []string
	for _, call := range c.Fake.Calls() {
		if strings.HasPrefix(call.Task, "train") && call.Attempt.Env["SWITCHYARD_ATTEMPT"] == "1" {
			env := call.Attempt.Env
			nodes = append(nodes, env["SWITCHYARD_NODE"])
			ranks = append(ranks, env["SWITCHYARD_GANG_RANK"]+"/"+env["SWITCHYARD_GANG_SIZE"])
			if hosts := strings.Split(env["SWITCHYARD_GANG_HOSTS"], ","); len(hosts) != 3 || hosts[0] != env["SWITCHYARD_GANG_MASTER_ADDR"] || env["SWITCHYARD_GANG_MASTER_PORT"] == "0" {
				t.Errorf("a member finds %v", env)
			}
		}
	}
	slices.Sort(nodes)
	slices.Sort(ranks)
	if len(slices.Compact(nodes)) != 3 || !slices.Equal(ranks, []string{"0/3", "1/3", "2/3"}) {
		t.Errorf("the members ran on %v as %v", nodes, ranks)
	}
	workertest.Replay(t, "gang", limits.Run{}, h.History(""))
}

// TestCancelledGangGivesItsPlacesUp checks that a run that is cancelled while a node has not answered ends only after the others
// have given their places up.
func TestCancelledGangGivesItsPlacesUp(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("a")
	c.Start("b")
	c.StartBehindLink("c").Cut()
	h := c.Submit(c.Input(`{name: gang, tasks: {
		train: {type: shell, spec: {command: x}, gang: {size: 3, perNode: 1}, resources: {cores: 0}}}}`))
	answers := func() (n int) {
		reserves := map[int64]bool{}
		for _, e := range h.History("") {
			reserves[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == names.ReserveActivity
			if reserves[e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()] {
				n++
			}
		}
		return n
	}
	workertest.Eventually(t, "two nodes have reserved a place", func() bool { return answers() == 2 })
	h.Cancel(nil)
	if run := h.Wait(); run.GetState() != v1.RunCancelled || answers() != 4 {
		t.Errorf("the run is %s, and the nodes have answered %d requests, want 4", run.GetState(), answers())
	}
}
