package vps

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

func create(t *testing.T, runs *fakeRuns, req *v1.CreateVpsRequest, headers ...string) (*connect.Response[v1.CreateVpsResponse], error) {
	t.Helper()
	r := connect.NewRequest(req)
	for i := 0; i < len(headers); i += 2 {
		r.Header().Set(headers[i], headers[i+1])
	}
	return Service{Runs: runs}.CreateVps(t.Context(), r)
}

// TestRequestHasTheFieldsOfMachines checks that the request has the fields of specs and tasks that apply to machines.
func TestRequestHasTheFieldsOfMachines(t *testing.T) {
	t.Parallel()
	request := (&v1.CreateVpsRequest{}).ProtoReflect().Descriptor().Fields()
	without := []protoreflect.Name{
		"type", "spec", "depends_on", "condition", "on_failure", "continue_on_error", "when", "workspace", // concern other tasks
		"retry", "cache", "batch", "artifacts", "gang", // unsupported by machines
		"parallel", "foreach", "matrix", "concurrency", "max_failures", "mutex", "semaphore", // only for workflows
	}
	used := map[protoreflect.Name]bool{}
	for _, m := range []proto.Message{&v1.VpsSpec{}, &v1.TaskDefinition{}} {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			same := request.ByName(field.Name())
			switch {
			case slices.Contains(without, field.Name()) || isOfRun(field.Name()):
			case same == nil:
				t.Errorf("the request lacks %s", field.FullName())
			case same.Kind() != field.Kind() || same.Cardinality() != field.Cardinality() || same.Message() != field.Message() && !field.IsMap():
				t.Errorf("%s has another type in the request", field.FullName())
			default:
				used[field.Name()] = true
			}
		}
	}
	for i := range request.Len() {
		if name := request.Get(i).Name(); !used[name] && !isOfRun(name) {
			t.Errorf("nothing becomes of %s", name)
		}
	}
}

func TestCreateStartsARunOfOneTask(t *testing.T) {
	t.Parallel()
	runs := &fakeRuns{answer: &v1.SubmitRunResponse{Id: "desk-x", Warnings: []*v1.Problem{{Path: "tasks.vps.spec.network", Message: "spec.network is odd"}}}}
	res, err := create(t, runs, &v1.CreateVpsRequest{
		Name: "desk", Image: "ubuntu", Mounts: []*v1.Mount{{HostPath: "/a", ContainerPath: "/a"}}, IdleTimeout: "2h", Timeout: "1d", Privileged: true,
		Env: map[string]string{"A": "b"}, Constraints: &v1.Constraints{TargetNode: "n1::0,1"}, Resources: &v1.Resources{Cores: proto.Float64(2)}, Batch: "mine", IdempotencyKey: "k",
		Options: &v1.RunOptions{PickupTimeout: durationpb.New(3)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Msg.GetId() != "desk-x" || res.Msg.GetTask() != "vps" || res.Msg.GetPrivateKey() != "" || res.Header().Get("Location") != "/v1/vps/desk-x" || res.Msg.GetWarnings()[0].GetPath() != "network" {
		t.Errorf("%v %v", res.Msg, res.Header())
	}
	sent := runs.submitted[0]
	def := sent.GetDefinition()
	task := def.GetTasks()["vps"]
	if def.GetName() != "desk" || len(def.GetTasks()) != 1 || task.GetType() != "vps" || task.GetTimeout() != "1d" || task.GetEnv()["A"] != "b" || task.GetBatch() != nil ||
		task.GetConstraints().GetTargetNode() != "n1::0,1" || task.GetResources().GetCores() != 2 || sent.GetBatch() != "mine" || sent.GetIdempotencyKey() != "k" || sent.GetOptions().GetPickupTimeout().GetNanos() != 3 {
		t.Errorf("sent %v", sent)
	}
	spec := task.GetSpec().GetFields()
	if spec["image"].GetStringValue() != "ubuntu" || !spec["privileged"].GetBoolValue() || spec["idleTimeout"].GetStringValue() != "2h" || len(spec["mounts"].GetListValue().GetValues()) != 1 || len(spec) != 4 {
		t.Errorf("the spec is %v", spec)
	}
	if _, err := definition.CompleteChecked(def); err != nil {
		t.Errorf("it is refused: %v", err)
	}
}

func TestGeneratedPairLogsInAndIsHandedOutOnce(t *testing.T) {
	t.Parallel()
	runs := &fakeRuns{answer: &v1.SubmitRunResponse{Id: "vps-x"}}
	res, err := create(t, runs, &v1.CreateVpsRequest{Image: "ubuntu", GenerateKey: true})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(res.Msg.GetPrivateKey()))
	if err != nil || !strings.HasPrefix(res.Msg.GetPrivateKey(), "-----BEGIN OPENSSH PRIVATE KEY-----\n") || signer.PublicKey().Type() != ssh.KeyAlgoED25519 {
		t.Fatalf("the private key is no key: %v", err)
	}
	line := runs.submitted[0].GetDefinition().GetTasks()["vps"].GetSpec().GetFields()["sshPublicKey"].GetStringValue()
	if line != res.Msg.GetPublicKey() || !strings.HasPrefix(line, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))) {
		t.Errorf("the machine has %q, the answer %q", line, res.Msg.GetPublicKey())
	}
	if text := runs.submitted[0].String(); strings.Contains(text, "PRIVATE") {
		t.Errorf("the run has the private key: %s", text)
	}
	again, err := create(t, runs, &v1.CreateVpsRequest{Image: "ubuntu", GenerateKey: true})
	if err != nil || again.Msg.GetPrivateKey() == res.Msg.GetPrivateKey() {
		t.Errorf("two machines have one pair: %v", err)
	}
	for name, req := range map[string]*v1.CreateVpsRequest{
		"a key of its own":   {Image: "x", GenerateKey: true, SshPublicKey: "ssh-ed25519 AAAA"},
		"an idempotency key": {Image: "x", GenerateKey: true, IdempotencyKey: "k"},
	} {
		if _, err := create(t, runs, req); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := create(t, runs, &v1.CreateVpsRequest{Image: "x", GenerateKey: true}, "Idempotency-Key", "k"); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a key in the headers: %v", err)
	}
	if len(runs.submitted) != 2 {
		t.Errorf("%d machines", len(runs.submitted))
	}
}

func TestProblemsUseRequestPaths(t *testing.T) {
	t.Parallel()
	def, err := definitionOf(&v1.CreateVpsRequest{
		Name: "a/b", SshPublicKey: "hunter2", Mounts: []*v1.Mount{{HostPath: "a", ContainerPath: "/b"}}, Timeout: "soon", Backend: "dokcer", VmDiskSize: "50G",
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = definition.CompleteChecked(def)
	runs := &fakeRuns{fail: err}
	_, err = create(t, runs, &v1.CreateVpsRequest{})
	problems, ok := errors.AsType[source.Problems](err)
	if !ok || connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Fatal(err)
	}
	coded, _ := errors.AsType[*connect.Error](err)
	if len(coded.Details()) != 1 {
		t.Errorf("details %v", coded.Details())
	}
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.GetPath())
		if strings.Contains(p.GetMessage(), "spec.") || strings.Contains(p.GetMessage(), "hunter2") {
			t.Errorf("%s", p.GetMessage())
		}
	}
	slices.Sort(paths)
	if want := []string{"backend", "image", "mounts[0].hostPath", "name", "sshPublicKey", "timeout", "vmDiskSize"}; !slices.Equal(paths, want) {
		t.Errorf("%v, want %v", paths, want)
	}
}
