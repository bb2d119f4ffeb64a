package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/cli/exit"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

func TestSubmit(t *testing.T) {
	f := fake(t)
	completed(f)
	file := write(t, "f.yaml", hello)
	if got := run(t, "submit", file, "--gateway", f.url); got.code != 0 || got.stdout != "nightly-4g5h6jkm\n" {
		t.Errorf("%+v", got)
	}
	got := run(t, "submit", file, "--gateway", f.url, "-o", "json")
	var d map[string]any
	must(t, json.Unmarshal([]byte(got.stdout), &d))
	if d["id"] != "nightly-4g5h6jkm" || d["name"] != "nightly" {
		t.Errorf("%v", d)
	}
	got = runWith(t, map[string]string{"SWITCHYARD_GATEWAY": f.url}, hello, "submit", "-", "--watch")
	if got.code != 0 || got.stdout != "nightly-4g5h6jkm\n" || !strings.Contains(got.stderr, "run nightly-4g5h6jkm completed") {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"submit", file}, {"runs", "rerun", "night"}, {"runs", "retry", "night"}} {
		got = run(t, append(args, "--watch", "-o", "json", "--gateway", f.url)...)
		var end struct{ Id, State string }
		if err := json.Unmarshal([]byte(got.stdout), &end); err != nil || got.code != 0 || end.Id != "nightly-4g5h6jkm" || end.State != "completed" {
			t.Errorf("%v: %v, %+v", args, err, got)
		}
	}
	if req := requests[*v1.SubmitRunRequest](f)[2]; req.GetDocument() != hello || req.GetFile() != "stdin" {
		t.Errorf("submitted %v", req)
	}
}

func TestRunsList(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListRunsResponse{NextPageToken: "more", Items: []*v1.Run{
		{Id: "nightly-4g5h6jkm", Name: "nightly", State: "running", Trigger: "submit", CreatedAt: after(0)},
		{Id: "b-7", Name: "b", State: "failed", Reason: "terminated", SubmittedBy: "ann@laptop (unverified)", Batch: "sweep-7", Trigger: "child", Parent: "a-1", CreatedAt: after(-86400), CompletedAt: after(-86000)},
	}})
	showsGolden(t, "runs-list", []string{"text", "json", "jsonl"}, "runs", "list", "--gateway", f.url, "--state", "failed", "--workflow", "b", "--limit", "7", "--page-token", "x",
		"--node", "gpu-1", "--type", "shell", "--label", "gpu", "--trigger", "child", "--parent", "a-1", "--owner", "ann@laptop", "--batch", "sweep-7", "--text", "disk full", "--since", "1h")
	want := &v1.ListRunsRequest{
		State: "failed", Name: "b", PageSize: 7, PageToken: "x", Node: "gpu-1", Type: "shell", Label: "gpu", Trigger: "child", Parent: "a-1", Owner: "ann@laptop",
		Batch: "sweep-7", Text: "disk full", Since: after(20 - 3600),
	}
	if !proto.Equal(f.asked[0], want) {
		t.Errorf("asked for %v", f.asked[0])
	}
	script(f, &v1.ListRunsResponse{})
	if got := run(t, "runs", "list", "--gateway", f.url, "-o", "json"); got.stdout != "{\n  \"items\": [],\n  \"nextPageToken\": \"\"\n}\n" {
		t.Errorf("an empty list is %q", got.stdout)
	}
	script(f, &v1.ListRunsResponse{Total: proto.Int32(0)})
	run(t, "runs", "list", "--gateway", f.url, "-o", "json").prints(t, exit.CodeDone, `"total": 0`)
	script(f, &v1.ListRunsResponse{Totals: map[string]int32{"running": 2, "failed": 11, "paused": 0}})
	got := run(t, "runs", "list", "--gateway", f.url, "--totals")
	if asked := f.asked[len(f.asked)-1].(*v1.ListRunsRequest); got.code != 0 || !strings.HasSuffix(got.stdout, "\n\nin all: 2 running, 11 failed\n") || !asked.GetTotals() {
		t.Errorf("with totals it is %+v", got)
	}
	if got := run(t, "runs", "list", "--gateway", f.url, "--totals", "-o", "json"); !strings.Contains(got.stdout, `"running": 2`) {
		t.Errorf("with totals it is %+v", got)
	}
	script(f, &v1.ListRunsResponse{Totals: map[string]int32{"running": 0}})
	if got := run(t, "runs", "list", "--gateway", f.url, "--totals"); !strings.HasSuffix(got.stdout, "in all: no runs\n") {
		t.Errorf("without runs it is %+v", got)
	}
}

func TestRunsGet(t *testing.T) {
	f := fake(t)
	nightly(f)
	got := run(t, "runs", "get", "last", "--gateway", f.url)
	if got.code != 0 || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	golden.Check(t, "testdata/runs-get.golden", got.stdout)
	golden.Check(t, "testdata/run-json-stdout.golden", run(t, "runs", "get", "last", "--gateway", f.url, "-o", "json").stdout)
	f.run.SubmittedBy, f.run.Batch = "ann@laptop (unverified)", "sweep-7"
	f.run.Trigger, f.run.Parent = "child", "a-1"
	input := map[string]any{"branch": "main", "note": strings.Repeat("long\n", 20)}
	for k := range 20 {
		input[fmt.Sprintf("p%02d", k)] = k
	}
	var err error
	f.run.Input, err = structpb.NewStruct(input)
	must(t, err)
	got = run(t, "runs", "get", "last", "--gateway", f.url)
	golden.Check(t, "testdata/runs-get-origin.golden", got.stdout)
	got = run(t, "runs", "get", "last", "--gateway", f.url, "-o", "json")
	var whole struct {
		Trigger, Parent string
		Input           map[string]any
	}
	must(t, json.Unmarshal([]byte(got.stdout), &whole))
	if whole.Trigger != "child" || whole.Parent != "a-1" || whole.Input["note"] != input["note"] || len(whole.Input) != len(input) {
		t.Errorf("%+v", whole)
	}
}

func TestRunsCancel(t *testing.T) {
	f := fake(t)
	if got := run(t, "runs", "cancel", "night", "--reason", "enough", "--gateway", f.url); got.code != 0 || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	if req := f.cancelled[0]; req.GetId() != "night" || req.GetReason() != "enough" || req.GetForce() {
		t.Errorf("asked for %v", req)
	}
	got := run(t, "runs", "cancel", "night", "--force", "--gateway", f.url)
	if want := "has been ended by force, with 2 child runs and parts of fan-outs; nodes are stopping 3 attempts"; got.code != 0 || !strings.Contains(got.stderr, want) {
		t.Errorf("%+v", got)
	}
	if !f.cancelled[1].GetForce() {
		t.Errorf("asked for %v", f.cancelled[1])
	}
	run(t, "runs", "cancel", "night", "build", "--force", "--gateway", f.url).ends(t, exit.CodeUsage, "runs kill night build")
	f.inFinally = true
	cancel := []string{"runs", "cancel", "night", "--gateway", f.url}
	run(t, cancel...).ends(t, 0, "and its finally runs on; `switchyard runs cancel "+fakeRun+" --now` ends it")
	run(t, append(cancel, "-o", "json")...).prints(t, 0, `"finallyRuns": true`)
	ids := map[string]bool{}
	for _, req := range f.cancelled {
		ids[req.GetRequestId()] = true
	}
	if len(ids) != 4 || ids[""] {
		t.Errorf("four commands send the IDs %v", ids)
	}
}

func TestRunsLogs(t *testing.T) {
	f := fake(t)
	nightly(f)
	got := run(t, "runs", "logs", "last", "--gateway", f.url)
	if want := "fetch | <fetched>\n"; got.stdout != want {
		t.Errorf("stdout %q, want %q", got.stdout, want)
	}
	if want := "the last run is nightly-4g5h6jkm\nbuild | main.go:3: unused\nbuild | main.go:9: shadowed\n"; got.stderr != want {
		t.Errorf("stderr %q, want %q", got.stderr, want)
	}
	// "last" is resolved only once.
	if id := f.logged[0].GetId(); id != "nightly-4g5h6jkm" {
		t.Errorf("asked for the logs of %q", id)
	}

	f.logs = []*v1.LogEntry{{Task: "fetch", Stream: "stdout", Data: []byte("a\x00\r\xff")}, {Task: "fetch", Stream: "stderr", Data: []byte("b")}}
	got = run(t, "runs", "logs", "nightly", "fetch", "-f", "--attempt", "2", "--stderr", "--gateway", f.url)
	if got.stdout != "a\x00\r\xff" || got.stderr != "b" {
		t.Errorf("bytes of one task come as %q and %q", got.stdout, got.stderr)
	}
	if req := f.logged[1]; req.GetTask() != "fetch" || !req.GetFollow() || req.Attempt == nil || req.GetAttempt() != 2 || req.GetStream() != "stderr" {
		t.Errorf("asked for %v", req)
	}
}

func TestExitCodes(t *testing.T) {
	good, bad := write(t, "good.yaml", hello), write(t, "bad.yaml", "name: x\ntasks:\n  a: { type: shel }\n")
	refuse := func(code connect.Code) *fakeGateway {
		f := fake(t)
		f.fail = connect.NewError(code, errStopping)
		return f
	}
	problems := connect.NewError(connect.CodeInvalidArgument, errStopping)
	detail, err := connect.NewErrorDetail(&v1.ValidationFailure{Problems: []*v1.Problem{
		{File: "x.yaml", Line: 3, Column: 5, Message: "unknown field", Hint: "did you mean tasks?"},
	}})
	must(t, err)
	problems.AddDetail(detail)
	withProblems := fake(t)
	withProblems.fail = problems

	for _, test := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"unknown command", []string{"rnu"}, exit.CodeUsage, "did you mean run"},
		{"unknown subcommand", []string{"runs", "lits"}, exit.CodeUsage, `unknown command "runs lits"`},
		{"unknown flag", []string{"run", "--frob"}, exit.CodeUsage, "see `switchyard run --help`"},
		{"missing argument", []string{"run"}, exit.CodeUsage, "FILE is missing"},
		{"too many arguments", []string{"runs", "get", "a", "b", "c"}, exit.CodeUsage, `unexpected argument "c"`},
		{"a command one level up", []string{"logs", "last"}, exit.CodeUsage, "did you mean runs logs?"},
		{"empty argument", []string{"runs", "get", ""}, exit.CodeUsage, "RUN must not be empty"},
		{"task and definition", []string{"runs", "get", "r", "t", "--definition"}, exit.CodeUsage, "not both"},
		{"logs without an end as a document", []string{"runs", "logs", "r", "-f", "-o", "json"}, exit.CodeUsage, "jsonl"},
		{"raw JSON", []string{"runs", "logs", "r", "--raw", "-o", "json"}, exit.CodeUsage, "--raw"},
		{"since", []string{"runs", "logs", "r", "--since", "yesterday"}, exit.CodeUsage, "10m"},
		{"detached and local", []string{"run", good, "--detach"}, exit.CodeUsage, "--gateway"},
		{"detached with logs", []string{"run", good, "--detach", "--logs", "--gateway", "h:1"}, exit.CodeUsage, "runs logs -f"},
		{"format", []string{"run", good, "-o", "yaml"}, exit.CodeUsage, "text, json or jsonl"},
		{"log level", []string{"dev", "--log-level", "loud"}, exit.CodeUsage, "debug, info, warn or error"},
		{"input", []string{"run", good, "--input", "x"}, exit.CodeUsage, "key=value"},
		{"input twice", []string{"run", good, "--input", "x=1", "--input", "x=2"}, exit.CodeUsage, "twice"},
		{"no nodes", []string{"run", good, "--nodes", "0"}, exit.CodeUsage, "1 to 100"},
		{"too many nodes", []string{"dev", "--nodes", "101"}, exit.CodeUsage, "0 to 100"},
		{"node name", []string{"run", good, "--name", "My Node"}, exit.CodeUsage, "my-node"},
		{"capability", []string{"worker", "--capability", "gpu"}, exit.CodeUsage, "key=value"},
		{"max parallel", []string{"run", good, "--max-parallel", "-1"}, exit.CodeUsage, "at least 1"},
		{"SSH host", []string{"dev", "--ssh-address", ":0", "--ssh-host", "sy.example.com:7222"}, exit.CodeUsage, "without a port"},
		{"SSH host without a door", []string{"gateway", "--ssh-host", "sy.example.com"}, exit.CodeUsage, "needs --ssh-address"},
		{"SSH port", []string{"gateway", "--ssh-address", ":0", "--ssh-port", "70000"}, exit.CodeUsage, "1 to 65535"},
		{"port", []string{"dev", "--port", "70000"}, exit.CodeUsage, "0 to 65535"},
		{"placement time-out", []string{"run", good, "--placement-timeout", "-1s"}, exit.CodeUsage, "negative"},
		{"heartbeat time-out", []string{"submit", good, "--heartbeat-timeout", "10ms"}, exit.CodeUsage, "at least 1s"},
		{"offline after", []string{"worker", "--offline-after", "10ms"}, exit.CodeUsage, "at least 1s"},
		{"drain time-out", []string{"worker", "--drain-timeout", "-1s"}, exit.CodeUsage, "negative"},
		{"drain deadline", []string{"nodes", "drain", "a", "--deadline", "-1s"}, exit.CodeUsage, "negative"},
		{"role", []string{"gateway", "--role", "boss"}, exit.CodeUsage, "auto, leader, worker or observer"},
		{"gaming process", []string{"worker", "--gaming-process", "[a"}, exit.CodeUsage, "process"},
		{"gaming load", []string{"worker", "--gaming-gpu-load", "101"}, exit.CodeUsage, "GPU load"},
		{"node limit", []string{"nodes", "list", "--limit", "0"}, exit.CodeUsage, "1 to 1000"},
		{"event limit", []string{"runs", "events", "r", "--limit", "10001"}, exit.CodeUsage, "1 to 10000"},
		{"event kind", []string{"runs", "events", "--event", "explode"}, exit.CodeUsage, "dead_lettered"},
		{"events since", []string{"runs", "events", "--gateway", "127.0.0.1:1", "--since", "yesterday"}, exit.CodeUsage, "--since \"yesterday\": use a duration"},
		{"events until", []string{"runs", "events", "--gateway", "127.0.0.1:1", "--until", "tomorrow"}, exit.CodeUsage, "--until \"tomorrow\": use a duration"},
		{"events of no time", []string{"runs", "events", "--gateway", "127.0.0.1:1", "--since", "5m", "--until", "10m"}, exit.CodeUsage, "--until 10m is not later than --since 5m"},
		{"after an event of no run", []string{"runs", "events", "--gateway", "127.0.0.1:1", "--after", "0-1"}, exit.CodeUsage, "--after 0-1: it needs RUN"},
		{"dead letter limit", []string{"dlq", "list", "--limit", "0"}, exit.CodeUsage, "1 to 1000"},
		{"limit", []string{"runs", "list", "--limit", "0"}, exit.CodeUsage, "1 to 1000"},
		{"since", []string{"runs", "list", "--gateway", "127.0.0.1:1", "--since", "yesterday"}, exit.CodeUsage, "such as 10m"},
		{"trigger", []string{"runs", "list", "--trigger", "magic"}, exit.CodeUsage, "schedule"},
		{"local flag on a gateway", []string{"run", good, "--gateway", "h:1", "--nodes", "2"}, exit.CodeUsage, "--nodes applies only to a run in this process"},
		{"instance limit", []string{"runs", "instances", "r", "t", "--limit", "0"}, exit.CodeUsage, "1 to 10000"},
		{"no file", []string{"submit"}, exit.CodeUsage, "--workflow NAME"},
		{"file and workflow", []string{"submit", good, "--workflow", "w"}, exit.CodeUsage, "not both"},
		{"dry run with a key", []string{"submit", good, "--dry-run", "--idempotency-key", "k"}, exit.CodeUsage, "are mutually exclusive"},
		{"dry run, watched", []string{"submit", good, "--dry-run", "--watch"}, exit.CodeUsage, "are mutually exclusive"},
		{"no such input file", []string{"submit", good, "--input-file", "/nowhere.yaml"}, exit.CodeUsage, "no such file"},
		{"two things from stdin", []string{"run", "-", "--input-file", "-"}, exit.CodeUsage, "standard input"},
		{"no run to draw", []string{"runs", "graph"}, exit.CodeUsage, "--file FILE"},
		{"run and file", []string{"runs", "graph", "r", "--file", good}, exit.CodeUsage, "not both"},
		{"chart width", []string{"runs", "timeline", "r", "--width", "5"}, exit.CodeUsage, "80 to 1000"},
		{"chart limit", []string{"runs", "timeline", "r", "--limit", "-1"}, exit.CodeUsage, "negative"},
		{"hold what", []string{"runs", "hold", "r"}, exit.CodeUsage, ": TASK is missing"},
		{"workflow without a name", []string{"workflows", "get"}, exit.CodeUsage, "NAME is missing"},
		{"both streams", []string{"runs", "logs", "r", "--stdout", "--stderr"}, exit.CodeUsage, "stderr"},
		{"gateway URL", []string{"runs", "list", "--gateway", "ftp://x"}, exit.CodeUsage, "not a gateway URL"},
		{"no such file", []string{"run", "/nowhere.yaml"}, exit.CodeUsage, "no such file"},
		{"a folder", []string{"run", "."}, exit.CodeUsage, "directory"},
		{"bad definition, run", []string{"run", bad}, exit.CodeUsage, bad + ":3:14: "},
		{"bad definition, submit", []string{"submit", bad}, exit.CodeUsage, bad + ":3:14: "},
		{"bad definition, validate", []string{"validate", good, bad}, exit.CodeUsage, "did you mean shell?"},
		{"nobody there", []string{"runs", "list", "--gateway", "127.0.0.1:1"}, exit.CodeSystem, "switchyard dev"},
		{"store", []string{"run", good, "--store", "nfs://x"}, exit.CodeSystem, "unknown scheme"},
		{"unknown run", []string{"runs", "get", "nope", "--gateway", fake(t).url}, exit.CodeUsage, `no run "nope"`},
		{"it has ended", []string{"runs", "cancel", "r", "--gateway", refuse(connect.CodeAborted).url}, exit.CodeNotDone, "shutting down"},
		{"its server lacks something", []string{"runs", "cancel", "r", "--gateway", refuse(connect.CodeFailedPrecondition).url}, exit.CodeSystem, "shutting down"},
		{"not allowed", []string{"runs", "cancel", "r", "--gateway", refuse(connect.CodePermissionDenied).url}, exit.CodeNotAllowed, "shutting down"},
		{"not logged in", []string{"submit", good, "--gateway", refuse(connect.CodeUnauthenticated).url}, exit.CodeNotAllowed, "shutting down"},
		{"broken gateway", []string{"runs", "list", "--gateway", refuse(connect.CodeInternal).url}, exit.CodeSystem, "shutting down"},
		{"gateway stopping", []string{"runs", "list", "--gateway", refuse(connect.CodeUnavailable).url}, exit.CodeSystem, "shutting down"},
		{"no gateway", []string{"runs", "list", "--gateway", refuse(connect.CodeUnimplemented).url}, exit.CodeSystem, "is not a gateway of this version"},
		{"problems that the gateway finds", []string{"submit", good, "--gateway", withProblems.url}, exit.CodeUsage, "x.yaml:3:5: unknown field\n  did you mean tasks?\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d", got.code, test.code)
			}
			if !strings.Contains(got.stderr, test.says) {
				t.Errorf("no %q in\n%s", test.says, got.stderr)
			}
			if strings.Contains(got.stderr, "Usage:") {
				t.Errorf("an error prints the usage:\n%s", got.stderr)
			}
		})
	}
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"runs"}, {"run", "--help"}, {"help", "dev"}, {"completion", "bash"}, {"version"}, {"--version"}, {"schema"}, {"workflows"}} {
		if got := run(t, args...); got.code != 0 || got.stdout == "" || got.stderr != "" {
			t.Errorf("%v: exit code %d, %d bytes on stdout, stderr %q", args, got.code, len(got.stdout), got.stderr)
		}
	}
}

func TestValidate(t *testing.T) {
	one := write(t, "one.yaml", hello)
	got := runWith(t, nil, `{"name":"two","tasks":{"a":{"type":"shell","spec":{"command":"true"}},"b":{"type":"shell","spec":{"command":"true"}}}}`, "validate", one, "-")
	if want := one + ": OK (1 task)\n-: OK (2 tasks)\n"; got.code != 0 || got.stdout != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

func TestDocumentsOfCommandsWithoutARun(t *testing.T) {
	good := write(t, "good.yaml", hello)
	dir := t.TempDir()
	bad := dir + "/bad.yaml"
	must(t, os.WriteFile(bad, []byte("name: x\ntasks:\n  a: { type: shel }\n"), 0o600))
	got := run(t, "validate", good, bad, dir+"/nowhere.yaml", "-o", "json")
	if got.code != exit.CodeUsage {
		t.Errorf("%+v", got)
	}
	golden.Check(t, "testdata/validate-json.golden", strings.NewReplacer(dir, "DIR", filepath.Dir(good), "DIR").Replace(got.stdout))
	golden.Check(t, "testdata/graph-file-json.golden", run(t, "runs", "graph", "--file", good, "-o", "json").stdout)
	var versions struct {
		Switchyard, TemporalServer string
		DataLevel                  int
	}
	must(t, json.Unmarshal([]byte(run(t, "version", "-o", "json").stdout), &versions))
	if versions.Switchyard == "" || versions.TemporalServer == "" || versions.DataLevel < 1 {
		t.Errorf("%+v", versions)
	}
	if got := run(t, "version"); !strings.Contains(got.stdout, fmt.Sprintf("\ndata level       %d\n", versions.DataLevel)) {
		t.Errorf("%+v", got)
	}
	if got := run(t, "--version"); got.stdout != "switchyard version "+versions.Switchyard+"\n" {
		t.Errorf("%+v", got)
	}
}

// TestValidateWarns checks that validate accepts a definition with a likely mistake and prints a warning.
func TestValidateWarns(t *testing.T) {
	file := write(t, "far.yaml", "name: far\ntasks: { a: { type: shell, spec: { command: 'echo {{ inputs.x }}' } } }\n")
	got := run(t, "validate", file)
	if want := file + ":2:51: warning: spec.command has \"{{ inputs.x }}\", which is not replaced"; got.code != 0 || !strings.Contains(got.stderr, want) {
		t.Errorf("%+v, want %q", got, want)
	}
}

// TestNotFoundHint checks that only a missing run points people to the list of runs.
func TestNotFoundHint(t *testing.T) {
	const hint = "runs list"
	noTask := connect.NewError(connect.CodeNotFound, errors.New(`run r has no task "x"; its tasks are a, b`))
	noRun := connect.NewError(connect.CodeNotFound, errNoRun)
	detail, err := connect.NewErrorDetail(&errdetails.ResourceInfo{ResourceType: "run", ResourceName: "nope"})
	if err != nil {
		t.Fatal(err)
	}
	noRun.AddDetail(detail)
	for want, refused := range map[bool]error{false: noTask, true: noRun} {
		f := fake(t)
		nightly(f)
		f.fail = refused
		got := run(t, "runs", "logs", "r", "x", "--gateway", f.url)
		if got.code != exit.CodeUsage || strings.Contains(got.stderr, hint) != want {
			t.Errorf("exit code %d, told %s", got.code, got.stderr)
		}
	}
}
