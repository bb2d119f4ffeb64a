package report

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/golden"
	"switchyard/drawing/graph"
	"switchyard/drawing/svg"
	"switchyard/drawing/timeline"
	v1 "switchyard/proto/switchyard/v1"
)

var begin = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func after(seconds float64) *timestamppb.Timestamp {
	return timestamppb.New(begin.Add(time.Duration(seconds * float64(time.Second))))
}

// hostile is a text that tries to end an element, run a script, colour a terminal and reverse the
// line.
const hostile = "</pre></title></script><script>alert(1)</script><svg onload=alert(2)><img src=https://example.com/x onerror=alert(3)> {{.}} \"' \x1b[31mred\x1b]0;t\a \u202egnp.exe\u2069 \xff\x00"

func hostileReport(t *testing.T) string {
	input, err := structpb.NewStruct(map[string]any{"note": strings.ToValidUTF8(hostile, "?"), "n": 3})
	if err != nil {
		t.Fatal(err)
	}
	run := &v1.Run{
		Id: "nightly-4g5h6jkm", Name: "nightly", State: "failed", Reason: "task_failed", Error: hostile, SubmittedBy: hostile, Batch: hostile,
		CreatedAt: after(0), CompletedAt: after(12), Input: input, Approval: &v1.RunApproval{State: "approved", By: "ann", Reason: hostile},
		Tasks: map[string]*v1.Task{
			"fetch": {State: "completed", Node: "local-1", AssignedAt: after(0.5), StartedAt: after(0.7), CompletedAt: after(2.5), Result: &v1.TaskResult{Artifacts: []*v1.Artifact{{Name: "app", Size: 3 << 20, Files: 7}, {Name: hostile, Files: 1}}}},
			"build": {State: "failed", Node: hostile, Reason: "exit_code", Error: hostile, DependsOn: []string{"fetch"}, AssignedAt: after(3), StartedAt: after(4), CompletedAt: after(12)},
			"clean": {State: "completed", Finally: true, Node: "local-1", AssignedAt: after(12), StartedAt: after(12), CompletedAt: after(12)},
			"never": {State: "skipped", Reason: "upstream", DependsOn: []string{"build"}, CompletedAt: after(12)},
		},
	}
	nodes := graph.NodesOf(run, begin)
	l := graph.NewLayout(nodes)
	r := Report{
		Run: run, Nodes: nodes, Layout: l, Rows: svg.Rows(run, nodes, l.Order, nil, begin.Add(12*time.Second)),
		Axis: timeline.NewAxis(begin, begin.Add(12*time.Second), false), Now: begin.Add(time.Hour), PageURL: "https://yard.example.com",
	}
	r.Failures, r.FailureCount = FailuresOf(run, graph.ByDepth(run.GetTasks()), nil)
	r.Failures[0].Lines = []string{"10%\r100%", hostile, strings.Repeat("x", 1000)}
	r.Failures[0].Missing = hostile
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestReportMatchesGoldenFile(t *testing.T) {
	golden.Check(t, "testdata/report.html", hostileReport(t))
}

// TestReportOfHostileTextsIsHarmless checks that the file runs and loads nothing, whatever names,
// errors and logs contain.
func TestReportOfHostileTextsIsHarmless(t *testing.T) {
	text := hostileReport(t)
	if found := regexp.MustCompile(`(?i)<(script|img|iframe|link|object|embed|base|form|image)\b|<[^>]*\s(on\w+|src|style|srcset)=`).FindString(text); found != "" {
		t.Errorf("has %s", found)
	}
	for _, href := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(href[1], "#") && !strings.HasPrefix(href[1], "https://yard.example.com/ui/runs/nightly-4g5h6jkm/tasks/fetch/artifacts/") {
			t.Errorf("leads to %s", href[1])
		}
	}
	for _, bad := range []string{"\x1b", "\u202e", "\u2069", "\x00", "\a", "ZgotmplZ", "url(h"} {
		if strings.Contains(text, bad) {
			t.Errorf("has %q", bad)
		}
	}
	if !strings.Contains(text, "default-src &#39;none&#39;") && !strings.Contains(text, "default-src 'none'") {
		t.Error("nothing forbids the network")
	}
}

func TestFailuresAreCountedAndBounded(t *testing.T) {
	count := int32(5000)
	run := &v1.Run{Tasks: map[string]*v1.Task{"a": {State: "failed"}, "each": {State: "failed", Count: &count, Counts: map[string]int32{"dead_letter": 4000}}}}
	var failed []*v1.Instance
	for i := range MaxFailures {
		failed = append(failed, &v1.Instance{Index: int32(i), State: "dead_letter", Error: fmt.Sprint(i)})
	}
	shown, n := FailuresOf(run, []string{"a", "each"}, map[string][]*v1.Instance{"each": failed})
	if len(shown) != MaxFailures || n != 4002 || shown[0].Name != "a" || shown[2].Name != "each[0]" {
		t.Errorf("%d of %d", len(shown), n)
	}
}
