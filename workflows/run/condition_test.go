package run_test

import (
	"fmt"
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
)

// TestCancelEndsRunAmongExpensiveConditions uses conditions of one level that exceed the cost limit.
func TestCancelEndsRunAmongExpensiveConditions(t *testing.T) {
	t.Parallel()
	condition := "a + b + c + d + e + f + g > 0"
	for _, v := range "abcdefg" {
		condition = fmt.Sprintf("[1,2,3,4,5,6,7,8,9,10].all(%c, %s)", v, condition)
	}
	def := &v1.Definition{Name: "expensive", Tasks: map[string]*v1.TaskDefinition{"root": workertest.ShellTask()}}
	for i := range 1000 {
		task := workertest.ShellTask("root")
		task.Condition = condition
		def.Tasks[fmt.Sprintf("t%d", i)] = task
	}
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("a")
	h := c.Submit(c.InputOf(def))
	h.AwaitTask("t0", func(*v1.Task) bool {
		counts := map[string]int{}
		for _, task := range h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks() {
			counts[task.GetState()]++
		}
		return counts["failed"] > 0
	})
	asked := time.Now()
	h.Cancel(nil)
	run := h.Wait()
	workertest.CheckRun(t, run, "cancelled", map[string]string{"root": "completed"})
	if took := time.Since(asked); took > workertest.Soon {
		t.Errorf("the cancel took %v", took)
	}
}
