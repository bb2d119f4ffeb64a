package calls

import "testing"

// The charges of a workflow task add up, and the next workflow task starts from zero.
func TestBudgetIsThatOfOneWorkflowTask(t *testing.T) {
	t.Parallel()
	var b budget
	for _, test := range []struct{ task, bytes, want int }{
		{task: 3, bytes: 100, want: 100}, {task: 3, bytes: 50, want: 150}, {task: 9, bytes: 70, want: 70}, {task: 9, bytes: 0, want: 70},
	} {
		if got := b.charged(test.task, test.bytes); got != test.want {
			t.Errorf("task %d has been charged %d, want %d", test.task, got, test.want)
		}
	}
}
