package taskrunner

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
	"switchyard/activities/logs"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// ownShell appends a suffix to the ids of attempts. Parallel tests and other processes that test use the same ids, and an
// Executor ends leftovers of an id wherever they run.
type ownShell struct {
	*shell.Executor
	suffix string
}

func (s ownShell) Capabilities() executor.Capabilities {
	can := s.Executor.Capabilities()
	can.Batch = s.Batch
	return can
}

func (s ownShell) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	a.ID += s.suffix
	return s.Executor.Run(ctx, a, spawned)
}

func (s ownShell) Batch(id string, lease *executor.Lease) (executor.Batch, error) {
	return s.Executor.Batch(id+s.suffix, lease)
}

// withShell lets the node run real programs.
func (b *bench) withShell() *bench {
	b.t.Helper()
	e, err := shell.New(shell.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.t.Error(err)
		}
	})
	b.Executors["shell"] = ownShell{e, fmt.Sprintf("@%d-%s", os.Getpid(), b.t.Name())}
	b.Folders.BaseDir = b.t.TempDir()
	return b
}

func object(t *testing.T, text string) *structpb.Struct {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	s, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func list(t *testing.T, text string) *structpb.ListValue {
	t.Helper()
	return object(t, `{"list":`+text+`}`).GetFields()["list"].GetListValue()
}

func command(t *testing.T, line string) *structpb.Struct {
	t.Helper()
	return &structpb.Struct{Fields: map[string]*structpb.Value{"command": structpb.NewStringValue(line)}}
}

// An instance gets its item, its number and, in one file, all of its inputs, wherever they were stored.
func TestWhatAnInstanceIsGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil).withShell()
	keep := func(name string, put func(key string) error) string {
		key := "runs/r-1/given/" + name
		if err := put(key); err != nil {
			t.Fatal(err)
		}
		return key
	}
	large := keep("context", func(key string) error {
		return b.Store.PutMessage(t.Context(), key, object(t, `{"channel":"beta"}`))
	})
	outputs := keep("outputs", func(key string) error {
		return b.Store.PutMessage(t.Context(), key, &historyv1.ItemList{Items: list(t, `[{"a":1},null]`).GetValues(), States: map[int32]string{1: "failed"}})
	})
	record := keep("record", func(key string) error {
		return b.Store.PutMessage(t.Context(), key, &historyv1.ExecuteResponse{State: "completed", Batch: []*historyv1.MemberResult{
			{Index: 3, Result: &v1.TaskResult{Output: object(t, `{"deep":true}`)}}, {Index: 4},
		}})
	})
	req := request("a")
	req.Spec = command(t, `cat "$SWITCHYARD_INPUT"; printf %s "$SWITCHYARD_ITEM/$SWITCHYARD_INDEX/$SWITCHYARD_COUNT/$SWITCHYARD_TASK_ID" >&2`)
	req.Index, req.Count, req.Item = new(int32(2)), 5, structpb.NewListValue(list(t, `["x",1]`))
	req.Input = object(t, `{"own":1}`)
	req.Context, req.RunInput = &historyv1.Shared{Key: large}, &historyv1.Shared{Value: object(t, `{"who":"me"}`)}
	req.Ends = &historyv1.AncestorEnds{Completed: []string{"plain", "quiet"}, Others: []*historyv1.AncestorEnd{
		{Task: "kept", State: "dead_letter", Reason: "exit_code", Error: "exit code 3: no", ExitCode: 3, Attempt: 1},
		{Task: "far", State: "skipped", Reason: "upstream", ExitCode: -1},
		{Task: "wide", State: "completed", FanOut: &historyv1.FanOutCounts{Count: 2, Completed: 1, Items: &historyv1.Items{List: list(t, `["x","y"]`)}}},
		{Task: "small", State: "completed", FanOut: &historyv1.FanOutCounts{Count: 1, Completed: 1}},
		{Task: "huge", State: "completed", FanOut: &historyv1.FanOutCounts{Count: 2, Completed: 2}},
	}}
	req.Parents = []*historyv1.ParentOutput{
		{Task: "plain", Output: object(t, `{"x":1}`)}, {Task: "quiet"}, {Task: "kept", Record: record + "#3"},
		{Task: "wide", FanOut: &historyv1.FanOutView{Count: 2, Outputs: &historyv1.Items{Key: outputs}}},
		{Task: "empty", FanOut: &historyv1.FanOutView{Count: 2}},
		{Task: "small", FanOut: &historyv1.FanOutView{Count: 1, Outputs: &historyv1.Items{List: list(t, `[{"b":2}]`)}}},
		{Task: "huge", FanOut: &historyv1.FanOutView{Count: 2, Error: "larger than 8 MiB together"}},
	}
	res := b.start(t.Context(), req).answer()
	want(t, res, "completed", "")
	var got any
	if err := json.Unmarshal([]byte(res.GetResult().GetStdout()), &got); err != nil {
		t.Fatalf("%v in %v", err, res)
	}
	wanted := object(t, `{"own":1,"item":["x",1],"index":2,"count":5,"context":{"channel":"beta"},"inputs":{"who":"me"},
		"plain":{"x":1},"quiet":{},"kept":{"deep":true},"wide":[{"a":1},null],"empty":[{},{}],"small":[{"b":2}],"huge":null,
		"ancestors":{
			"plain":{"state":"completed","exitCode":0,"attempt":0},"quiet":{"state":"completed","exitCode":0,"attempt":0},
			"kept":{"state":"dead_letter","reason":"exit_code","error":"exit code 3: no","exitCode":3,"attempt":1},
			"far":{"state":"skipped","reason":"upstream","exitCode":-1,"attempt":0},
			"wide":{"state":"completed","exitCode":0,"count":2,"completed":1,"failed":1,"instances":[
				{"index":0,"state":"completed","item":"x"},{"index":1,"state":"failed","item":"y"}]},
			"small":{"state":"completed","exitCode":0,"count":1,"completed":1,"failed":0,"instances":[{"index":0,"state":"completed"}]},
			"huge":{"state":"completed","exitCode":0,"count":2,"completed":2,"failed":0}}}`).AsMap()
	if diff := cmp.Diff(any(wanted), got); diff != "" {
		t.Errorf("the input (-want +got):\n%s", diff)
	}
	if got := res.GetResult().GetStderr(); got != `["x",1]/2/5/r-1/a[2]` {
		t.Errorf("the environment says %s", got)
	}
	if key := storekey.Result("r-1", 0, "a[2]", 0); b.Store.GetMessage(t.Context(), key, &historyv1.ExecuteResponse{}) != nil {
		t.Errorf("there is no record %s", key)
	}
}

// Expressions in spec and env are rendered for each member of a batch separately.
func TestTemplates(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil).withShell()
	if err := b.Store.PutMessage(t.Context(), "runs/r-1/given/record", &historyv1.ExecuteResponse{State: "completed", Result: &v1.TaskResult{Stdout: "far"}}); err != nil {
		t.Fatal(err)
	}
	req := batchOf(0, 1, 2)
	req.Templates = true
	req.Input = object(t, `{"base":10}`)
	req.Context, req.RunInput = &historyv1.Shared{Value: object(t, `{"channel":"beta"}`)}, &historyv1.Shared{Value: object(t, `{"who":"me"}`)}
	req.Views = map[string]*historyv1.ParentView{"p": {State: "completed", Record: "runs/r-1/given/record"}}
	req.Spec = object(t, `{"command":["sh","-c","echo $0 $V $W","${{ input.item.n + input.base }}"]}`)
	req.Env = map[string]string{"V": "${{ parent.p.stdout }}-${{ workflow.context.channel }}", "W": "${{ workflow.input.who }} ${{ workflow.runId }}"}
	for i, m := range req.Batch {
		m.Item = structpb.NewStructValue(object(t, []string{`{"n":1}`, `{"m":1}`, `{"n":3}`}[i]))
	}
	res := b.start(t.Context(), req).answer()
	wantEnds(t, res.GetBatch(), "0 completed", "1 failed expression", "2 completed")
	for i, out := range map[int]string{0: "11 far-beta me r-1\n", 2: "13 far-beta me r-1\n"} {
		if got := res.GetBatch()[i].GetResult().GetStdout(); got != out {
			t.Errorf("member %d printed %q, want %q", i, got, out)
		}
	}
	if r := res.GetBatch()[1]; !strings.Contains(r.GetError(), "spec.command[3]") || !strings.Contains(r.GetError(), "input.item.n + input.base") || r.GetStartedMs() != -1 || r.GetResult().GetExitCode() != -1 {
		t.Errorf("the error is %v", r)
	}
	one := request("a")
	one.Templates, one.Env = true, map[string]string{"V": "${{ nonsense }}"}
	one.Spec = command(t, "touch "+b.Folders.BaseDir+"/ran")
	res = b.start(t.Context(), one).answer()
	want(t, res, "failed", "expression")
	if _, err := os.Stat(b.Folders.BaseDir + "/ran"); err == nil || res.GetNode() != "n" || res.GetStartedAt() != nil {
		t.Errorf("it has run: %v", res)
	}
	one.Env, one.RunInput = nil, &historyv1.Shared{Value: object(t, `{"what":"rm -rf $SWITCHYARD_SHARED_DIR/"}`)}
	one.Spec = command(t, "${{ workflow.input.what }}")
	want(t, b.startAs(t.Context(), "unset", one).answer(), "failed", "bad_spec")
}

// Values that are too long for a program fail an attempt before it starts, except an item, which the attempt finds in its input.
func TestValuesThatAreTooLongForAProgram(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	b := newBench(t, nil).withShell()
	for claim, test := range []struct{ command, env, err string }{
		{`["cat","${{ workflow.input.long }}"]`, "", "spec.command[1] has 200000 bytes; Linux allows at most 131071 in an argument"},
		{`["true"]`, "${{ workflow.input.long }}", "env.V has 200000 bytes; Linux allows at most 131069 in a variable of this name"},
		{`"printf %s ${{ workflow.input.long }} | wc -c"`, "", ""},
	} {
		req := request("a")
		req.Claim, req.Templates, req.RunInput = int32(claim)+1, true, &historyv1.Shared{Value: object(t, `{"long":"`+long+`"}`)}
		req.Spec, req.Env = object(t, `{"command":`+test.command+`}`), map[string]string{"V": test.env}
		res := b.startAs(t.Context(), test.command, req).answer()
		if test.err == "" {
			want(t, res, "completed", "")
			if got := strings.TrimSpace(res.GetResult().GetStdout()); got != "200000" {
				t.Errorf("the command printed %q", got)
			}
			continue
		}
		want(t, res, "failed", "bad_spec")
		if !strings.HasPrefix(res.GetError(), test.err) || !strings.Contains(res.GetError(), "$SWITCHYARD_INPUT") || res.GetStartedAt() != nil {
			t.Errorf("%s: %v", test.command, res)
		}
	}
	req := batchOf(0, 1)
	req.Spec = command(t, `echo "${SWITCHYARD_ITEM-unset}"; wc -c <"$SWITCHYARD_INPUT"`)
	req.Batch[0].Item, req.Batch[1].Item = structpb.NewStringValue(long), structpb.NewStringValue("short")
	res := b.start(t.Context(), req).answer()
	wantEnds(t, res.GetBatch(), "0 completed", "1 completed")
	for i, out := range []string{"unset\n2", "short\n"} {
		if got := res.GetBatch()[i].GetResult().GetStdout(); !strings.HasPrefix(got, out) {
			t.Errorf("member %d printed %q, want %q", i, got, out)
		}
	}
	one := request("b")
	one.Spec, one.Index, one.Count, one.Item = command(t, "true"), new(int32(0)), 1, structpb.NewStringValue(long)
	want(t, b.startAs(t.Context(), "one", one).answer(), "completed", "")
	if log := b.logOf(logs.Attempt{Run: "r-1", Task: "b[0]", Claim: one.Claim}); !strings.HasPrefix(log, "[switchyard: SWITCHYARD_ITEM is not set") {
		t.Errorf("the log says %q", log)
	}
}
