package cli

import (
	"strings"
	"testing"

	"switchyard/cli/exit"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

// talk makes two tasks print alternately.
func talk(f *fakeGateway) {
	nightly(f)
	at := func(seconds float64, task, stream, text string) {
		f.logs = append(f.logs, &v1.LogEntry{Task: task, Stream: stream, Time: after(seconds), Data: []byte(text)})
	}
	f.logs = nil
	at(1, "fetch", "stdout", "one\ntw")
	at(2, "build", "stderr", "main.go:3: unused\n")
	at(3, "fetch", "stdout", "o\n")
	at(4, "fetch", "stderr", "warning\n")
	at(5, "fetch", "stdout", "three")
}

func TestRunsLogsFormats(t *testing.T) {
	f := fake(t)
	talk(f)
	for name, args := range map[string][]string{
		"json":       {"-o", "json"},
		"jsonl":      {"-o", "jsonl", "--tail", "1"},
		"timestamps": {"--timestamps"},
		"tail":       {"--tail", "2", "--timestamps"},
		"one":        {"fetch", "--tail", "3", "--timestamps"},
	} {
		got := run(t, append([]string{"runs", "logs", "nightly", "--gateway", f.url}, args...)...)
		if got.code != exit.CodeDone {
			t.Errorf("%s: %+v", name, got)
		}
		golden.Check(t, "testdata/runs-logs-"+name+".golden", got.stdout+"--- standard error\n"+got.stderr)
	}
	f.logs = nil
	if got := run(t, "runs", "logs", "nightly", "-o", "json", "--gateway", f.url); got.stdout != "{\n  \"items\": [],\n  \"nextPageToken\": \"\"\n}\n" {
		t.Errorf("no lines are %q", got.stdout)
	}
}

func TestRunsLogsSince(t *testing.T) {
	for text, want := range map[string]string{"5s": "15:09:41", "2026-03-14T15:00:00Z": "15:00:00"} {
		f := fake(t)
		talk(f)
		run(t, "runs", "logs", "nightly", "--since", text, "--gateway", f.url)
		if got := f.logged[0].GetSince().AsTime().Format("15:04:05"); got != want {
			t.Errorf("--since %s asks for %s, want %s", text, got, want)
		}
	}
}

// TestRunsLogsOutlastTheGateway checks that a gateway that disappears at any point neither loses nor repeats a line.
func TestRunsLogsOutlastTheGateway(t *testing.T) {
	t.Parallel()
	for i, args := range [][]string{{"-f"}, {}, {"-f", "--tail", "9"}} {
		f := fake(t)
		talk(f)
		want := run(t, "runs", "logs", "nightly", "--gateway", f.url)
		if f.breaks = 2; i == 0 {
			f.breaks, f.cuts = 0, 2 // the gateway is killed
		}
		// The first message must arrive: a killed gateway takes what its client has not read along.
		await := func(sys *system) { f.beforeCut = func() { sys.stdout.(*buffer).await(t, "fetch | one") } }
		c := startWith(t, await, nil, "", append([]string{"runs", "logs", "nightly", "--gateway", f.url}, args...)...)
		got := result{code: c.wait(t)}
		got.stdout, got.stderr = c.stdout.String(), c.stderr.String()
		again := 0
		var said []string
		for line := range strings.Lines(got.stderr) {
			if strings.HasPrefix(line, "lost the connection to the gateway at "+f.url+"; trying") {
				again++
				continue
			}
			said = append(said, line)
		}
		if got.code != exit.CodeDone || again == 0 || len(args) < 2 && (got.stdout != want.stdout || strings.Join(said, "") != want.stderr) {
			t.Errorf("%v: %d times lost, %+v\nwant %+v", args, again, got, want)
		}
		if n := strings.Count(got.stdout+got.stderr, " | "); n != 5 {
			t.Errorf("%v: %d lines, want 5: %+v", args, n, got)
		}
	}
}

// TestRunsLogsNameTheNodeOfMissingLogs checks that missing logs are an error that names the node that has them.
func TestRunsLogsNameTheNodeOfMissingLogs(t *testing.T) {
	f := fake(t)
	talk(f)
	f.missing = []*v1.MissingLog{{Task: "build", Attempt: 1, Node: "far-1"}}
	got := run(t, "runs", "logs", "nightly", "--gateway", f.url)
	if got.code != exit.CodeSystem || !strings.Contains(got.stdout, "fetch | one\n") {
		t.Errorf("%+v", got)
	}
	golden.Check(t, "testdata/runs-logs-missing.golden", got.stderr)
	f.missing[0].Partial = true
	got = run(t, "runs", "logs", "nightly", "-f", "--gateway", f.url)
	if got.code != exit.CodeSystem || !strings.Contains(got.stderr, "the end of the log of task build, attempt 1, is not in the gateway's store; node far-1 ran it") {
		t.Errorf("%+v", got)
	}
}

func TestLogsOfChildRuns(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.logs, f.run.Tasks = nil, map[string]*v1.Task{"deploy": {State: "failed", Type: "run", ChildRun: "deploy-1"}}
	got := run(t, "runs", "logs", "nightly", "--gateway", f.url)
	want := "run nightly-4g5h6jkm has printed nothing itself; `switchyard runs logs nightly-4g5h6jkm --children` prints what its child runs have printed\n"
	if got.code != 0 || got.stdout != "" || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("%+v, want %q", got, want)
	}
	f.logs = []*v1.LogEntry{{Task: "deploy/build", Stream: "stdout", Data: []byte("built\n")}}
	got = run(t, "runs", "logs", "nightly", "--children", "--gateway", f.url)
	if got.code != 0 || got.stdout != "deploy/build | built\n" || !f.logged[len(f.logged)-1].GetChildren() {
		t.Errorf("%+v", got)
	}
	for _, flag := range []string{"--follow", "--attempt=0", "--generation=0"} {
		run(t, "runs", "logs", "nightly", "--children", flag, "--gateway", f.url).ends(t, exit.CodeUsage, "--children cannot be combined with")
	}
	f.logs, f.run.Tasks = nil, map[string]*v1.Task{"fetch": {State: "completed", Type: "shell"}}
	if got := run(t, "runs", "logs", "nightly", "--gateway", f.url); strings.Contains(got.stderr, "--children") {
		t.Errorf("a run without children: %+v", got)
	}
}
