package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestRunsGraph(t *testing.T) {
	f := fake(t)
	fanned(f)
	if says := showsGolden(t, "runs-graph", []string{"text", "mermaid", "dot", "svg"}, "runs", "graph", "last", "--gateway", f.url); says != "" {
		t.Errorf("it says %q", says)
	}
}

func TestGraphOfADefinition(t *testing.T) {
	file := write(t, "f.yaml", `name: plan
tasks:
  find: { type: shell, spec: { command: ls } }
  each: { type: shell, spec: { command: echo }, dependsOn: [find], foreach: find.files }
  five: { type: shell, spec: { command: echo }, dependsOn: [find], parallel: 5, condition: parent.find.exitCode == 0 }
  tidy: { type: shell, spec: { command: echo }, dependsOn: [each, five], onFailure: run }
  last: { type: shell, spec: { command: echo }, dependsOn: [tidy], when: all_done }
`)
	if says := showsGolden(t, "graph-file", []string{"text", "mermaid", "dot", "svg"}, "runs", "graph", "--file", file); says != "" {
		t.Errorf("it says %q", says)
	}
}

func TestRunsTimeline(t *testing.T) {
	f := fake(t)
	fanned(f)
	if says := showsGolden(t, "runs-timeline", []string{"text", "json", "svg"}, "runs", "timeline", "last", "--gateway", f.url); says != "" {
		t.Errorf("it says %q", says)
	}
	got := run(t, "runs", "timeline", "last", "--limit", "2", "--width", "80", "--gateway", f.url)
	if lines := strings.Split(got.stdout, "\n"); !strings.Contains(got.stdout, "\nand 6 that took less time\n") || len(lines) > 12 {
		t.Errorf("%+v", got)
	}
}

// TestTimelineOfALargeFanOut checks that a large fan-out has one row per node, however many instances it has.
func TestTimelineOfALargeFanOut(t *testing.T) {
	f := fake(t)
	fanned(f)
	const many = 5000
	count := int32(many)
	f.run.Tasks["each"].Count = &count
	f.page = 1500
	f.instances["each"] = nil
	for i := range many {
		from := 2.1 + 5*float64(i)/many
		f.instances["each"] = append(f.instances["each"], &v1.Instance{
			Index: int32(i), State: "completed", Node: fmt.Sprintf("local-%d", 1+i%3), AssignedAt: after(from), StartedAt: after(from + 0.1), CompletedAt: after(from + 0.5),
		})
	}
	got := run(t, "runs", "timeline", "last", "-o", "json", "--gateway", f.url)
	var d timelineJSON
	must(t, json.Unmarshal([]byte(got.stdout), &d))
	instances, rows := 0, 0
	for _, r := range d.Rows {
		if r.Task == "each" {
			instances += r.Instances
			rows++
			if len(r.Spans) > 0 || r.RunSeconds < 600 || r.WaitSeconds < 160 {
				t.Errorf("%+v", r)
			}
		}
	}
	if instances != many || rows != 3 {
		t.Errorf("%d instances in %d rows", instances, rows)
	}
	got = run(t, "runs", "timeline", "last", "--gateway", f.url)
	if lines := strings.Count(got.stdout, "\n"); lines > 20 || !strings.Contains(got.stdout, "1667 instances, 11m06s") {
		t.Errorf("%s", got.stdout)
	}
}
