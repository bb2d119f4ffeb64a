package e2e

import (
	"encoding/json"
	"testing"

	"switchyard/dev/processes"
)

// list is a list as JSON prints it.
type list[Item any] struct {
	Items         []Item `json:"items"`
	NextPageToken string `json:"nextPageToken"`
}

type nodeItem struct {
	Labels       []string          `json:"labels"`
	Capabilities map[string]string `json:"capabilities"`
}

type eventItem struct {
	At, Task, Event, Node, Detail string
	Attempt                       int
}

// ask runs a command on a gateway and decodes its JSON output.
func ask[Answer any](t *testing.T, gateway string, args ...string) Answer {
	t.Helper()
	code, stdout, stderr := run(t, append(args, "--gateway", gateway, "-o", "json")...)
	var a Answer
	if code != 0 {
		t.Fatalf("%v exits with %d: %s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &a); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, processes.Tail(stdout))
	}
	return a
}

// do runs a command on a gateway and checks its exit code.
func do(t *testing.T, gateway string, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := run(t, append(args, "--gateway", gateway)...)
	if code != want {
		t.Errorf("%v exits with %d, want %d: %s%s", args, code, want, stdout, stderr)
	}
	return stdout, stderr
}

type instanceItem struct {
	Index       int
	State, Node string
	Attempt     int
	Result      struct{ Output map[string]any }
}

// instances returns the instances of a task.
func instances(t *testing.T, gateway, id, task string) []instanceItem {
	t.Helper()
	return ask[list[instanceItem]](t, gateway, "runs", "instances", id, task, "--limit", "100").Items
}
