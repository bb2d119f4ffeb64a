package cli

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// withInputs is a definition that takes inputs of several types.
const withInputs = `name: typed
inputs:
  version: { required: true }
  count: { type: integer, default: 1 }
  files: { type: list }
tasks:
  a: { type: shell, spec: { command: 'true' } }
`

func TestInputIsReadByItsType(t *testing.T) {
	f := fake(t)
	completed(f)
	file, values := write(t, "f.yaml", withInputs), write(t, "in.yaml", "version: 2.0\ncount: 7\nfiles: [a, b]\n")
	want, _ := structpb.NewStruct(map[string]any{"version": "1.10", "count": 7.0, "files": []any{"a", "b"}})
	for _, args := range [][]string{{"submit", file}, {"run", file}} {
		f.asked = nil
		run(t, append(args, "--input", "version=1.10", "--input-file", values, "--gateway", f.url)...).ends(t, 0, "")
		if in := requests[*v1.SubmitRunRequest](f)[0].GetInput(); !proto.Equal(in, want) {
			t.Errorf("%v: input %v", args, in)
		}
	}
	// A stored definition also gives the types.
	d, err := readDocument(&system{stdin: strings.NewReader(withInputs)}, "-")
	must(t, err)
	script(f, &v1.GetWorkflowResponse{Definition: d.def})
	f.asked = nil
	got := runWith(t, nil, "version: 1.10\n", "submit", "--workflow", "typed", "--input-file", "-", "--gateway", f.url)
	if req := requests[*v1.SubmitRunRequest](f)[0]; got.code != 0 || req.GetWorkflow() != "typed" || req.GetInput().AsMap()["version"] != "1.10" {
		t.Errorf("%+v: submitted %v", got, req)
	}
}

func TestSubmitWithKeyAndBatch(t *testing.T) {
	f := fake(t)
	file := write(t, "f.yaml", hello)
	script(f, &v1.SubmitRunResponse{Id: fakeRun, Name: "nightly", Existed: true})
	got := run(t, "submit", file, "--idempotency-key", "k1", "--batch", "sweep-7", "--gateway", f.url)
	if got.code != 0 || got.stdout != fakeRun+"\n" || got.stderr != "run nightly-4g5h6jkm was started by an earlier request with this key\n" {
		t.Errorf("%+v", got)
	}
	if req := requests[*v1.SubmitRunRequest](f)[0]; req.GetIdempotencyKey() != "k1" || req.GetBatch() != "sweep-7" {
		t.Errorf("submitted %v", req)
	}
	got = run(t, "submit", file, "--idempotency-key", "k1", "-o", "json", "--gateway", f.url)
	if want := "{\n  \"existed\": true,\n  \"id\": \"nightly-4g5h6jkm\",\n  \"name\": \"nightly\",\n  \"warnings\": []\n}\n"; got.stdout != want {
		t.Errorf("%+v", got)
	}
}

func TestDryRun(t *testing.T) {
	f := fake(t)
	input, _ := structpb.NewStruct(map[string]any{"channel": "stable"})
	refusals := []*v1.NodeVerdict{{Name: "a", Feasible: true, Score: 80}, {Name: "b", Reasons: []string{"no GPU", "0 of 4 cores free"}}}
	script(f, &v1.PlanRunResponse{Name: "hello", Input: input, Tasks: []*v1.PlannedTask{
		{Task: "fetch", Type: "shell", Placement: "1 of 2 nodes", Nodes: refusals},
		{Task: "each", Type: "shell", Level: 1, DependsOn: []string{"fetch"}, Instances: "fetch.files", Placement: "1 of 2 nodes", Nodes: refusals},
		{Task: "ship", Type: "approval", Level: 2, DependsOn: []string{"each", "t1", "t2", "t3", "t4", "t5", "t6"}, StartsWhen: "all have succeeded"},
	}})
	file := write(t, "f.yaml", hello)
	if says := showsGolden(t, "plan", []string{"text", "json"}, "submit", file, "--dry-run", "--input", "n=1", "--gateway", f.url); says != "" {
		t.Errorf("it says %q", says)
	}
	if req := f.asked[0].(*v1.PlanRunRequest).GetSubmit(); req.GetDocument() != hello || req.GetInput().AsMap()["n"] != 1.0 || len(f.asked) != 2 {
		t.Errorf("asked for %v", f.asked)
	}
}
