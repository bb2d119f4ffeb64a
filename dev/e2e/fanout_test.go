package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fanned holds the fields of a fanned-out task in the JSON of a run.
type fanned struct {
	State, Error string
	Count        *int
	Counts       map[string]int
	Instances    []instanceItem
}

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

// fanOf decodes a fanned-out task from the JSON of a run.
func fanOf(t *testing.T, text, task string) fanned {
	t.Helper()
	var d struct{ Tasks map[string]fanned }
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("not a JSON document: %v\n%s", err, tail(text))
	}
	return d.Tasks[task]
}

func TestFanOutInJSON(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t, "run", "-o", "json", write(t, `
name: fan
tasks:
  find: { type: shell, spec: { command: 'echo "{\"files\":[\"a\",\"b\",\"c\"]}" > "$SWITCHYARD_OUTPUT"' } }
  each:
    type: shell
    spec: { command: 'echo "$SWITCHYARD_INDEX of $SWITCHYARD_COUNT is $SWITCHYARD_ITEM"; test "$SWITCHYARD_ITEM" != b' }
    dependsOn: [find]
    foreach: find.files
    maxFailures: 1
    retry: { maxRetries: 0 }
  none: { type: shell, spec: { command: 'false' }, foreach: [] }
`))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	each := fanOf(t, stdout, "each")
	if each.State != "completed" || each.Count == nil || *each.Count != 3 || each.Counts["completed"] != 2 || each.Counts["failed"] != 1 || len(each.Instances) != 3 {
		t.Fatalf("each is %+v", each)
	}
	for i, item := range []string{"a", "b", "c"} {
		got := each.Instances[i]
		state, exit := "completed", 0
		if item == "b" {
			state, exit = "failed", 1
		}
		if want := fmt.Sprintf("%d of 3 is %s\n", i, item); got.Index != i || got.State != state || got.Result.ExitCode != exit || got.Result.Stdout != want || got.Node == "" {
			t.Errorf("instance %d is %+v", i, got)
		}
	}
	if none := fanOf(t, stdout, "none"); none.State != "completed" || none.Count == nil || *none.Count != 0 {
		t.Errorf("a fan-out of an empty list is %+v", none)
	}
}

// TestFanOutPrintsFewLines checks that progress does not print one line per instance of a large fan-out.
func TestFanOutPrintsFewLines(t *testing.T) {
	t.Parallel()
	code, _, stderr := run(t, "run", write(t, `
name: many
tasks:
  each: { type: shell, spec: { command: 'true' }, parallel: 300, batch: auto }
`))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if n := strings.Count(stderr, "each["); n > 20 {
		t.Errorf("%d lines about instances:\n%s", n, stderr)
	}
	if !strings.Contains(stderr, "300/300 done") {
		t.Errorf("the end is not told:\n%s", stderr)
	}
}

// TestFanOutIsShown reads the instances of a run through every interface.
func TestFanOutIsShown(t *testing.T) {
	t.Parallel()
	s, dir := startDev(t, "--nodes", "2"), t.TempDir()
	// The instance that fails waits for the others, because its failure stops those that have not started.
	id := s.submit(t, write(t, fmt.Sprintf(`
name: shown
tasks:
  each:
    type: shell
    parallel: 30
    retry: { maxRetries: 1, backoffMs: 1 }
    spec:
      command: |
        echo number $SWITCHYARD_INDEX; touch %[1]s/$SWITCHYARD_INDEX
        test $SWITCHYARD_INDEX != 7 || { while test $(ls %[1]s | wc -l) -lt 30; do sleep 0.05; done; exit 1; }
  after: { type: shell, spec: { command: 'true' }, dependsOn: [each] }
`, dir)))
	do(t, s.gateway, 1, "runs", "watch", id)
	var indices []int
	token, states := "", map[string]int{}
	for pages := 0; pages == 0 || token != ""; pages++ {
		page := ask[list[instanceItem]](t, s.gateway, "runs", "instances", id, "each", "--limit", "11", "--page-token", token)
		if len(page.Items) > 11 || pages > 10 {
			t.Fatalf("page %d has %d instances", pages, len(page.Items))
		}
		for _, i := range page.Items {
			indices = append(indices, i.Index)
			states[i.State]++
		}
		token = page.NextPageToken
	}
	if len(indices) != 30 || !slices.IsSorted(indices) || states["dead_letter"] != 1 {
		t.Errorf("instances %v in states %v", indices, states)
	}
	stdout, _ := do(t, s.gateway, 0, "runs", "get", id)
	if !strings.Contains(stdout, "each[7]") || !strings.Contains(stdout, "/30 done") || strings.Contains(stdout, "each[8]") {
		t.Errorf("runs get prints\n%s", stdout)
	}
	awaitWholeLog(t, s.gateway, id, "each[3]", "number 3\n")
	awaitLog(t, s.gateway, id, "each", "has the lines of all instances", func(log string) bool {
		return strings.Count(log, "\n") >= 30 && strings.Contains(log, "each[3] | number 3\n")
	})
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"graph", id}, "↓ – after"},
		{[]string{"graph", id, "-o", "mermaid"}, "t0 --> t1"},
		{[]string{"graph", id, "-o", "dot"}, `"each" -> "after";`},
		{[]string{"timeline", id}, "local-1"},
	} {
		if stdout, _ := do(t, s.gateway, 0, append([]string{"runs"}, test.args...)...); !strings.Contains(stdout, test.want) {
			t.Errorf("%v prints\n%s", test.args, stdout)
		}
	}
	timeline := ask[struct {
		Rows []struct {
			Task, Node string
			Instances  int
			RunSeconds float64
		}
	}](t, s.gateway, "runs", "timeline", id)
	ran := 0
	for _, r := range timeline.Rows {
		if r.Task == "each" && r.Node != "" && r.RunSeconds > 0 {
			ran += r.Instances
		}
	}
	if ran < 8 { // one failure more than allowed stops it
		t.Errorf("the timeline shows %d instances: %+v", ran, timeline.Rows)
	}
}
