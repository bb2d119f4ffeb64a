package cli

import (
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// environments returns one environment in each state.
func environments() []*v1.Environment {
	return []*v1.Environment{
		{Name: "base", Kind: "image", State: "ready", Version: 1, Size: 51 << 20, Image: "debian:13", Node: "gpu-1", CreatedBy: "ann", CreatedAt: after(0), ReadyAt: after(9), ImageId: "sha256:5f3a", Digest: "91c2", Archive: "0f", Parts: 7},
		{Name: "disk", Kind: "disk", State: "ready", Version: 4, Size: 3 << 30, Run: "desk-7k2m9x", Task: "vps", Node: "gpu-2", CreatedBy: "ann", CreatedAt: after(0), ReadyAt: after(90),
			Creation: &v1.EnvironmentCreation{State: "creating", Version: 5, Size: 8 << 20, Error: "this is try 2; the one before has failed: no route"}},
		{Name: "new", State: "creating", Version: 1, Run: "lab-4c8q1z", Task: "box[1]", Node: "gpu-2", CreatedAt: after(5), Error: "it waits until node gpu-2 begins"},
		{Name: "old", Kind: "image", State: "ready", Version: 1, Image: "alpine", Node: "gpu-1", CreatedAt: after(0), ReadyAt: after(3),
			Creation: &v1.EnvironmentCreation{State: "failed", Version: 2, Error: "there is no image \"alpinee\""}},
		{Name: "typo", State: "failed", Version: 1, Image: "debain", Node: "gpu-1", CreatedAt: after(6), Error: "there is no image \"debain\""},
	}
}

// inState returns environment tools in the given state.
func inState(version int32, state, reason string) *v1.Environment {
	return &v1.Environment{Name: "tools", Version: version, State: state, Error: reason, Size: 5 << 20, Node: "gpu-1"}
}

// scriptCreation lets the gateway create version 2 of environment tools and show its environments in order. It does not
// answer, or has no such environment, where there is nil.
func scriptCreation(f *fakeGateway, absent error, looks ...*v1.Environment) {
	f.absent = absent
	script(f, &v1.CreateEnvironmentResponse{Environment: inState(2, v1.EnvironmentCreating, "")})
	var replies []*v1.GetEnvironmentResponse
	for _, e := range looks {
		if e == nil {
			replies = append(replies, nil)
		} else {
			replies = append(replies, &v1.GetEnvironmentResponse{Environment: e})
		}
	}
	script(f, replies...)
}

func TestEnvCreateWaitsUntilTheVersionIsReady(t *testing.T) {
	f := fake(t)
	older := inState(1, "ready", "")
	older.Creation = &v1.EnvironmentCreation{Version: 2, State: "creating", Error: "it waits until node gpu-1 begins"}
	scriptCreation(f, connect.NewError(connect.CodeUnavailable, errStopping), nil, nil, older, older, inState(2, "ready", ""))
	got := run(t, "env", "create", "tools", "--image", "debian:13", "--node", "gpu-1", "--registry-auth", "hub", "--replace", "--gateway", f.url)
	for _, says := range []string{
		"environment tools (version 2) is being created on gpu-1", "environment tools: the gateway does not answer", "environment tools: it waits until node gpu-1 begins",
		"environment tools (version 2) is ready, 5.0 MiB",
	} {
		if strings.Count(got.stderr, says) != 1 {
			t.Errorf("%q is not said once: %s", says, got.stderr)
		}
	}
	want := &v1.CreateEnvironmentRequest{Name: "tools", Image: "debian:13", Node: "gpu-1", RegistryAuth: "hub", Replace: true}
	if got.code != 0 || got.stdout != "" || !proto.Equal(f.asked[0], want) {
		t.Errorf("%+v; sent %v", got, f.asked)
	}
}

func TestEnvCreateSendsTheTaskBehindItsRun(t *testing.T) {
	f := fake(t)
	scriptCreation(f, nil, inState(2, "ready", ""))
	for _, test := range []struct {
		args string
		want *v1.CreateEnvironmentRequest
	}{
		{"tools --from desk-1 vps", &v1.CreateEnvironmentRequest{Name: "tools", Run: "desk-1", Task: "vps"}},
		{"tools box[1] --from desk-1", &v1.CreateEnvironmentRequest{Name: "tools", Run: "desk-1", Task: "box[1]"}},
		{"tools --from desk-1 --detach -o json", &v1.CreateEnvironmentRequest{Name: "tools", Run: "desk-1"}},
		{"tools --vm-image /srv/a.qcow2", &v1.CreateEnvironmentRequest{Name: "tools", VmImage: "/srv/a.qcow2"}},
	} {
		f.asked = nil
		got := run(t, append([]string{"env", "create", "--gateway", f.url}, strings.Fields(test.args)...)...)
		if got.code != 0 || !proto.Equal(f.asked[0], test.want) {
			t.Errorf("%s: %+v; sent %v", test.args, got, f.asked)
		}
		if strings.Contains(test.args, "json") != strings.Contains(got.stdout, `"state": "creating"`) {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
}

func TestEnvCreateRefusesBadFlags(t *testing.T) {
	f := fake(t)
	scriptCreation(f, nil, inState(2, "ready", ""))
	for says, args := range map[string]string{
		"NAME is missing":                  "",
		`"Tools" is not a valid`:           "Tools --image a",
		"environment tools needs a source": "tools",
		"are mutually exclusive; give":     "tools --image a --from b",
		`unexpected argument "vps"`:        "tools vps --image a",
		`unexpected argument "more"`:       "tools vps more --from a",
		"the node that runs the task":      "tools --from a --node b",
		"--registry-auth needs":            "tools --from a --registry-auth b",
		"unknown flag: --environment":      "tools --environment x",
	} {
		run(t, append([]string{"env", "create", "--gateway", f.url}, strings.Fields(args)...)...).ends(t, exit.CodeUsage, says)
	}
	if len(f.asked) > 0 {
		t.Errorf("sent %v", f.asked)
	}
}

func TestEnvCreateSaysWhyNothingWasCreated(t *testing.T) {
	f := fake(t)
	failed := inState(1, "ready", "")
	failed.Creation = &v1.EnvironmentCreation{Version: 2, State: "failed", Error: "there is\nno image"}
	for says, look := range map[string]*v1.Environment{
		"environment tools (version 2) was not created: node gpu-1 did not start": inState(2, "failed", "node gpu-1 did not start"),
		"was not created: there is no image":                                      failed,
		"version 1 is kept; `switchyard nodes get gpu-1`":                         failed,
		"(version 2) was deleted before it was ready":                             nil,
		"tools (version 2) was deleted before":                                    inState(1, "ready", ""),
	} {
		scriptCreation(f, connect.NewError(connect.CodeNotFound, errNoRun), look)
		if got := run(t, "env", "create", "tools", "--image", "a", "--gateway", f.url, "-o", "json"); got.code != exit.CodeNotDone || !strings.Contains(got.stderr, says) || got.stdout != "" {
			t.Errorf("%s: %+v", says, got)
		}
	}
	f.fail = connect.NewError(connect.CodeAlreadyExists, errors.New("environment tools exists"))
	run(t, "env", "create", "tools", "--image", "a", "--gateway", f.url).ends(t, exit.CodeNotDone, "environment tools exists")
}

func TestInterruptedEnvCreateLeavesTheCreationUnderWay(t *testing.T) {
	f := fake(t)
	scriptCreation(f, nil, inState(2, "creating", ""))
	c := startWith(t, func(s *system) {
		s.screen, s.stderrTerminal = tui.NewTerminal(s.rawStderr, true, func() (int, int) { return 80, 24 }), true
	}, nil, "", "env", "create", "tools", "--image", "a", "--gateway", f.url)
	c.stderr.await(t, "stored 5.0 MiB")
	c.interrupt(exit.ErrInterrupted)
	if code := c.wait(t); code != exit.CodeInterrupted || len(requests[*v1.DeleteEnvironmentRequest](f)) != 0 {
		t.Errorf("exit code %d, asked %v", code, f.asked)
	}
	for _, says := range []string{"environment tools is still being created", "switchyard env delete tools"} {
		c.stderr.await(t, says)
	}
}

func TestEnvListAndGet(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListEnvironmentsResponse{Items: environments()})
	showsGolden(t, "env-list", []string{"text", "json", "jsonl"}, "environments", "list", "--gateway", f.url)
	script(f, &v1.GetEnvironmentResponse{Environment: environments()[1]})
	showsGolden(t, "env-get", []string{"text", "json"}, "env", "get", "disk", "--gateway", f.url)
}

func TestEnvDeletePrintsTheOutcome(t *testing.T) {
	f := fake(t)
	all := environments()
	for i, says := range []string{
		"environment base is deleted; running tasks keep it", "environment disk: the creation of version 5 is cancelled; version 4 is kept", "the creation of environment new is cancelled",
		"environment old is deleted", "the failed creation of environment typo is removed",
	} {
		script(f, &v1.DeleteEnvironmentResponse{Environment: all[i]})
		run(t, "env", "delete", all[i].GetName(), "--force", "--gateway", f.url).ends(t, 0, says)
		if want := (&v1.DeleteEnvironmentRequest{Name: all[i].GetName(), Force: true}); !proto.Equal(f.asked[i], want) {
			t.Errorf("sent %v", f.asked[i])
		}
	}
	run(t, "env", "delete", "base", "--gateway", f.url, "-o", "json").prints(t, 0, `"name": "typo"`)
	f.fail = connect.NewError(connect.CodeAborted, errors.New("environment base is in use: open run desk-1 names it"))
	run(t, "env", "delete", "base", "--gateway", f.url).ends(t, exit.CodeNotDone, "open run desk-1")
}

func TestVpsCreateOfAVirtualMachineAndOfAnEnvironment(t *testing.T) {
	f := fake(t)
	for i, test := range []struct {
		args string
		want *v1.CreateVpsRequest
	}{
		{"--environment tools", &v1.CreateVpsRequest{Environment: "tools"}},
		{"--vm-image /srv/a.qcow2 --vm-disk-size 50G", &v1.CreateVpsRequest{Backend: "qemu", VmImage: "/srv/a.qcow2", VmDiskSize: "50G"}},
		{"--backend qemu --environment disk", &v1.CreateVpsRequest{Backend: "qemu", Environment: "disk"}},
	} {
		got := run(t, append([]string{"vps", "create", "--gateway", f.url}, strings.Fields(test.args)...)...)
		test.want.Env = map[string]string{}
		if got.code != 0 || len(f.asked) != i+1 || !proto.Equal(f.asked[i], test.want) {
			t.Errorf("%s: %+v; sent %v", test.args, got, f.asked)
		}
	}
	run(t, "vps", "create", "--gateway", f.url, "--image", "a", "--backend", "xen").ends(t, exit.CodeUsage, "qemu")
}
