package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

// aPublicKey is the contents of a public key file.
const aPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2q0WZhYbT0sQ9VlLk1c6yGJQzH1FqyT1hVqPj8xQmD me@host\n"

func machines() []*v1.Vps {
	return []*v1.Vps{
		{
			Id: "desk-7k2m9x", Name: "desk", Task: "vps", Status: "running", Node: "gpu-1", Image: "ubuntu:24.04", VpsBackend: "docker", SshPort: 7222, SshUser: "vps.desk-7k2m9x",
			SshCommand: "ssh -p 7222 vps.desk-7k2m9x@GATEWAY", SubmittedBy: "ann", CreatedAt: after(0), StartedAt: after(5), IdleTimeout: "2h", Notice: "its node is silent",
		},
		{
			Id: "lab-4c8q1z", Name: "lab", Task: "box[1]", Status: "lost", Node: "gpu-2", Image: "debian", VpsBackend: "docker", Error: "node gpu-2 was lost",
			SshCommand: "switchyard ssh lab-4c8q1z 'box[1]'", CreatedAt: after(0), StartedAt: after(6), CompletedAt: after(60),
		},
	}
}

func TestVpsCreateSendsItsFlags(t *testing.T) {
	f := fake(t)
	key := write(t, "id.pub", "# mine\n"+aPublicKey)
	got := run(t, "vps", "create", "--gateway", f.url, "--image", "ubuntu", "--name", "desk", "--ssh-key", key, "--cores", "2.5", "--memory", "8G", "--gpus", "1", "--node", "gpu-1::1",
		"--node-label", "a,b", "--mount", "/srv/data:/data:ro", "--mount", "/home:/home", "--idle-timeout", "2h", "--timeout", "3d", "--env", "A=b=c", "--secret-env", "T=store:t",
		"--privileged", "--network", "host", "--priority", "7", "--idempotency-key", "k")
	want := &v1.CreateVpsRequest{
		Image: "ubuntu", Name: "desk", SshPublicKey: "# mine\n" + aPublicKey, Resources: &v1.Resources{Cores: proto.Float64(2.5), MemoryMb: 8192, Gpus: 1},
		Constraints: &v1.Constraints{TargetNode: "gpu-1::1", NodeLabels: []string{"a", "b"}},
		Mounts:      []*v1.Mount{{HostPath: "/srv/data", ContainerPath: "/data", ReadOnly: true}, {HostPath: "/home", ContainerPath: "/home"}},
		IdleTimeout: "2h", Timeout: "3d", Env: map[string]string{"A": "b=c"}, SecretEnv: map[string]string{"T": "store:t"}, Privileged: true, Network: "host", Priority: 7, IdempotencyKey: "k",
	}
	if got.code != 0 || got.stdout != "vps-x\n" || len(f.asked) != 1 || !proto.Equal(f.asked[0], want) {
		t.Errorf("%+v\nsent %v", got, f.asked)
	}
	if got := run(t, "vps", "create", "--gateway", f.url, "--image", "ubuntu", "-o", "json"); got.code != 0 || !strings.Contains(got.stdout, `"id": "vps-x"`) || strings.Contains(got.stdout, "Key") {
		t.Errorf("%+v", got)
	}
	if bare := f.asked[1]; !proto.Equal(bare, &v1.CreateVpsRequest{Image: "ubuntu", Env: map[string]string{}}) {
		t.Errorf("sent %v", bare)
	}
}

func TestVpsCreateRefusesBadFlags(t *testing.T) {
	f := fake(t)
	private := write(t, "id", "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n")
	two := write(t, "two.pub", aPublicKey+"hunter2\n")
	for says, args := range map[string][]string{
		"--image is missing":                      {},
		"contains a private key":                  {"--image", "x", "--ssh-key", private},
		"two.pub: line 2 is not a public key":     {"--image", "x", "--ssh-key", two},
		"no such file":                            {"--image", "x", "--ssh-key", private + "x"},
		"are mutually exclusive":                  {"--image", "x", "--ssh-key", two, "--generate-key"},
		"the file exists":                         {"--image", "x", "--generate-key=" + private},
		`--memory "8"`:                            {"--image", "x", "--memory", "8"},
		"--memory 9999999T is more":               {"--image", "x", "--memory", "9999999T"},
		"--mount /a":                              {"--image", "x", "--mount", "/a"},
		"--mount a:/b":                            {"--image", "x", "--mount", "a:/b"},
		`--env "A"`:                               {"--image", "x", "--env", "A"},
		"--cores and --gpus must not be negative": {"--image", "x", "--gpus", "-1"},
		"--wait -1s: it must not be negative":     {"--image", "x", "--wait=-1s"},
		`unexpected argument "ubuntu"`:            {"ubuntu"},
	} {
		got := run(t, append([]string{"vps", "create", "--gateway", f.url}, args...)...)
		if got.code != exit.CodeUsage || !strings.Contains(got.stderr, says) || strings.Contains(got.stderr, "hunter2") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("asked %v", f.asked)
	}
}

func TestVpsCreateWritesAPrivateKeyForItsOwnerAlone(t *testing.T) {
	f := fake(t)
	const fakePrivateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nbm90IG9uZQ==\n-----END OPENSSH PRIVATE KEY-----\n"
	script(f, &v1.CreateVpsResponse{Id: "vps-x", Task: "vps", PrivateKey: fakePrivateKey, PublicKey: "ssh-ed25519 AAAA vps"})
	file := filepath.Join(t.TempDir(), "key")
	got := run(t, "vps", "create", "--gateway", f.url, "--image", "x", "--generate-key="+file, "-o", "json")
	text, err := os.ReadFile(file)
	if err != nil || got.code != 0 || string(text) != fakePrivateKey || strings.Contains(got.stdout+got.stderr, "PRIVATE") || !strings.Contains(got.stdout, "ssh-ed25519 AAAA") {
		t.Errorf("%+v, %v", got, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if got := run(t, "vps", "create", "--gateway", f.url, "--image", "x", "--generate-key"); got.code != 0 || got.stdout != fakePrivateKey || !strings.Contains(got.stderr, "machine vps-x; its private key is shown once") {
		t.Errorf("%+v", got)
	}
	f.fail = connect.NewError(connect.CodeInvalidArgument, errors.New("no"))
	refused := filepath.Join(t.TempDir(), "key")
	run(t, "vps", "create", "--gateway", f.url, "--image", "x", "--generate-key="+refused).ends(t, exit.CodeUsage, "")
	if _, err := os.Stat(refused); err == nil {
		t.Error("a request that is refused leaves a file")
	}
}

func TestVpsCreateWaits(t *testing.T) {
	f := fake(t)
	m := machines()[0]
	at := func(status, why string) *v1.Vps {
		m := proto.CloneOf(m)
		m.Status, m.Error = status, why
		return m
	}
	looks := func(machines ...*v1.Vps) {
		var all []*v1.GetVpsResponse
		for _, m := range machines {
			all = append(all, &v1.GetVpsResponse{Vps: m})
		}
		script(f, all...)
	}
	looks(at("queued", "no node"), at("assigned", ""), m)
	run(t, "vps", "create", "--gateway", f.url, "--image", "x", "--wait").ends(t, 0, "is running on gpu-1; log in with: ssh -p 7222 vps.desk-7k2m9x@127.0.0.1")
	looks(at("queued", ""), at("failed", "no such image"))
	run(t, "vps", "create", "--gateway", f.url, "--image", "x", "--wait=1h").ends(t, exit.CodeNotDone, "has ended as failed: no such image")
	away := at("lost", "its node is silent")
	away.Notice = "its node is silent"
	looks(away, m)
	run(t, "vps", "create", "--gateway", f.url, "--image", "x", "--wait=1h").ends(t, 0, "")
	script(f, &v1.GetVpsResponse{Vps: away})
	if got := run(t, "vps", "status", "desk-x", "--gateway", f.url); strings.Count(got.stdout, "its node is silent") != 1 {
		t.Errorf("%+v", got)
	}
	gone := at("lost", "nothing of it is left")
	gone.Notice = ""
	looks(gone)
	run(t, "vps", "create", "--gateway", f.url, "--image", "x", "--wait=1h").ends(t, exit.CodeNotDone, "has ended as lost")
	looks(at("queued", "no node has 9 GPUs"))
	if got := run(t, "vps", "create", "--gateway", f.url, "--image", "x", "--wait=1ms"); got.code != exit.CodeNotDone || got.stdout != "vps-x\n" || !strings.Contains(got.stderr, "is still queued after 1ms: no node has 9 GPUs") {
		t.Errorf("%+v", got)
	}
}

func TestVpsListAndStatus(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListVpsResponse{Items: machines()})
	showsGolden(t, "vps-list", []string{"text", "json", "jsonl"}, "vps", "list", "--gateway", f.url, "--status", "running", "--node", "gpu-1", "--name", "desk")
	if want := (&v1.ListVpsRequest{Status: "running", Node: "gpu-1", Name: "desk", PageSize: 100}); !proto.Equal(f.asked[0], want) {
		t.Errorf("asked for %v", f.asked[0])
	}
	for _, format := range []string{"text", "json"} {
		for i, name := range []string{"desk", "lab"} {
			m := machines()[i]
			script(f, &v1.GetVpsResponse{Vps: m})
			got := run(t, "vps", "status", m.GetId(), "--gateway", f.url, "-o", format)
			if got.code != 0 {
				t.Errorf("%+v", got)
			}
			golden.Check(t, "testdata/vps-status-"+name+"-"+format+".golden", got.stdout)
		}
	}
}

func TestVpsStopRestartAndKill(t *testing.T) {
	f := fake(t)
	script(f, &v1.StopVpsResponse{Id: "desk-x", Task: "vps"}, &v1.StopVpsResponse{Id: "lab-x", Task: "vps"})
	script(f, &v1.RestartVpsResponse{Id: "desk-x", Task: "vps"}, &v1.RestartVpsResponse{Id: "lab-x", Task: "vps"})
	script(f, &v1.KillVpsResponse{Id: "desk-x", Task: "vps"}, &v1.KillVpsResponse{Id: "lab-x", Task: "vps"})
	for _, action := range []string{"stop", "restart", "kill"} {
		run(t, "vps", action, "desk-x", "--gateway", f.url, "--reason", "done").ends(t, 0, "machine desk-x is being "+map[string]string{"stop": "stopped", "restart": "restarted", "kill": "killed"}[action])
		run(t, "vps", action, "lab-x", "box[1]", "--gateway", f.url, "-o", "json").prints(t, 0, `"id": "lab-x"`)
	}
	want := []proto.Message{
		&v1.StopVpsRequest{Id: "desk-x", Reason: "done"}, &v1.StopVpsRequest{Id: "lab-x", Task: "box[1]"},
		&v1.RestartVpsRequest{Id: "desk-x", Reason: "done"}, &v1.RestartVpsRequest{Id: "lab-x", Task: "box[1]"},
		&v1.KillVpsRequest{Id: "desk-x", Reason: "done"}, &v1.KillVpsRequest{Id: "lab-x", Task: "box[1]"},
	}
	if !slices.EqualFunc(f.asked, want, proto.Equal) {
		t.Errorf("asked %v", f.asked)
	}
	f.fail = connect.NewError(connect.CodeAborted, errors.New("run desk-x: task vps has ended"))
	f.run = &v1.Run{Id: "desk-x", State: "running"}
	run(t, "vps", "stop", "desk-x", "--gateway", f.url).ends(t, exit.CodeNotDone, "switchyard vps status desk-x")
}
