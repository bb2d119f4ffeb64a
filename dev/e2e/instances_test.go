package e2e

import "testing"

type instanceItem struct {
	Index       int
	State, Node string
	Attempt     int
	Error       string
	StartedAt   string
	CompletedAt string
	Result      struct {
		ExitCode int
		Stdout   string
		Output   map[string]any
	}
}

// instances returns the instances of a task.
func instances(t *testing.T, gateway, id, task string) []instanceItem {
	t.Helper()
	return ask[list[instanceItem]](t, gateway, "runs", "instances", id, task, "--limit", "100").Items
}
