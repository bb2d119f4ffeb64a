package cli

import (
	"fmt"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestRunsReport(t *testing.T) {
	f := fake(t)
	fanned(f)
	for i := range 25 {
		f.lines = append(f.lines, &v1.LogLine{Task: "each[4]", Stream: "stderr", Text: fmt.Sprintf("line %d", i)})
	}
	f.run.Tasks["each"].Result = &v1.TaskResult{Artifacts: []*v1.Artifact{{Name: "app"}}}
	got := run(t, "runs", "report", "last", "--gateway", f.url)
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{"<!doctype html>", `id="t-each[4]"`, `id="n-each"`, "exit code 3", "line 24\n", "line 5\n", `href="` + f.url + "/ui/runs/" + f.run.GetId() + "/tasks/each/artifacts/app"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(got.stdout, "line 4\n") {
		t.Error("there are more than the last 20 lines")
	}
}

func TestReportIsNotWrittenToATerminal(t *testing.T) {
	f := fake(t)
	fanned(f)
	c := startWith(t, func(s *system) { s.stdoutPlain = true }, nil, "", "runs", "report", "last", "--gateway", f.url)
	if code := <-c.code; code == 0 || !strings.Contains(c.stderr.String(), "switchyard runs report last > run.html") || c.stdout.String() != "" {
		t.Errorf("code %d, %s", code, c.stderr)
	}
}

// TestReportOfALargeFanOutIsSmall checks that the report of a run with 10,000 instances is smaller than 1 MB.
func TestReportOfALargeFanOutIsSmall(t *testing.T) {
	f := fake(t)
	fanned(f)
	const many = 10_000
	count := int32(many)
	f.run.Tasks["each"].Count, f.run.Tasks["each"].Counts = &count, map[string]int32{"completed": many / 2, "dead_letter": many / 2}
	f.page = 5000
	f.instances["each"] = nil
	for i := range many {
		from := 2.1 + 5*float64(i)/many
		n := &v1.Instance{Index: int32(i), State: "completed", Node: "local-1", AssignedAt: after(from), StartedAt: after(from + 0.1), CompletedAt: after(from + 0.5)}
		if i%2 == 1 {
			n.State, n.Error = "dead_letter", strings.Repeat("no such image ", 50)
		}
		f.instances["each"] = append(f.instances["each"], n)
	}
	for i := range 60 {
		for range 20 {
			f.lines = append(f.lines, &v1.LogLine{Task: fmt.Sprintf("each[%d]", i), Text: strings.Repeat("x", 4000)})
		}
	}
	got := run(t, "runs", "report", "last", "--gateway", f.url)
	if got.code != 0 || len(got.stdout) > 1<<20 {
		t.Errorf("code %d, %d bytes, %s", got.code, len(got.stdout), got.stderr)
	}
	if !strings.Contains(got.stdout, "more that failed") || !strings.Contains(got.stdout, "5000/10000 done") {
		t.Error("what is left out is not counted")
	}
}
