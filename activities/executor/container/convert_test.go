package container

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/docker/docker/api/types/mount"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// Conversion requests GPUs by index, and the address in the network of the spec.
func TestConvertRequestsGPUsAndAddress(t *testing.T) {
	m, err := convert(request{
		spec: &v1.ContainerSpec{
			Image: "i", Command: structpb.NewStringValue("true"), Network: "net", Ulimits: []*v1.Ulimit{{Name: "nofile", Soft: 5}},
		},
		attempt: executor.Attempt{Limits: executor.Limits{Cores: 8, Memory: 64 << 20, Processes: 9}, Binding: executor.Binding{GPUs: []string{"0", "2"}}},
		ip:      "10.0.0.9", numa: &numaSet{cpus: "0-3", mems: "0"}, cores: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	h := m.host
	if len(h.DeviceRequests) != 1 || !slices.Equal(h.DeviceRequests[0].DeviceIDs, []string{"0", "2"}) || h.DeviceRequests[0].Count != 0 {
		t.Errorf("GPUs: %+v", h.DeviceRequests)
	}
	if h.NanoCPUs != 4e9 || h.Memory != 64<<20 || h.MemorySwap != h.Memory || *h.PidsLimit != 9 || h.CpusetCpus != "0-3" || h.CpusetMems != "0" {
		t.Errorf("resources: %+v", h.Resources)
	}
	if u := h.Ulimits[0]; u.Soft != 5 || u.Hard != 5 {
		t.Errorf("a limit without a hard one: %+v", u)
	}
	if got := m.networks.EndpointsConfig["net"].IPAMConfig.IPv4Address; got != "10.0.0.9" {
		t.Errorf("address %q", got)
	}
	if slices.ContainsFunc(m.config.Env, func(e string) bool { return strings.HasPrefix(e, "NVIDIA_") }) {
		t.Errorf("environment: %v", m.config.Env)
	}
}

func TestCommandsOfSpecs(t *testing.T) {
	text := structpb.NewStringValue
	for name, test := range map[string]struct {
		spec       *v1.ContainerSpec
		entrypoint []string
		arguments  []string
	}{
		"list":                    {&v1.ContainerSpec{Command: Words([]string{"echo", "$A"})}, nil, []string{"echo", "$A"}},
		"string":                  {&v1.ContainerSpec{Command: text("echo $1"), Args: []string{"x", "y z"}}, []string{"sh"}, []string{"-c", "echo $1", "sh", "x", "y z"}},
		"string of several lines": {&v1.ContainerSpec{Command: text("cd /x\necho")}, []string{"sh"}, []string{"-ec", "cd /x\necho"}},
		"interpreter":             {&v1.ContainerSpec{Command: text("#!/usr/bin/env python3\n1"), Args: []string{"x"}}, []string{"/usr/bin/env"}, []string{"python3", "/switchyard/script", "x"}},
		"string that is too long": {&v1.ContainerSpec{Command: text(strings.Repeat("x", 200_000)), Args: []string{"x"}}, []string{"sh"}, []string{"-c", ". '/switchyard/script'", "sh", "x"}},
		"shell":                   {&v1.ContainerSpec{Command: text("a | b"), Shell: text("bash")}, []string{"bash"}, []string{"-eo", "pipefail", "-c", "a | b"}},
		"shell of a list":         {&v1.ContainerSpec{Command: text("x"), Shell: Words([]string{"zsh", "-c"})}, []string{"zsh"}, []string{"-c", "x"}},
		"args after a list":       {&v1.ContainerSpec{Command: Words([]string{"echo", "a"}), Args: []string{"b"}}, nil, []string{"echo", "a", "b"}},
		"args alone":              {&v1.ContainerSpec{Args: []string{"echo", "b"}}, nil, []string{"echo", "b"}},
		"entry point":             {&v1.ContainerSpec{Entrypoint: text("echo"), Args: []string{"b"}}, []string{"echo"}, []string{"b"}},
		"long entry point":        {&v1.ContainerSpec{Entrypoint: Words([]string{"echo", "a"}), Command: Words([]string{"b"}), Args: []string{"c"}}, []string{"echo", "a"}, []string{"b", "c"}},
	} {
		got, err := commandOf(test.spec)
		if err != nil || !slices.Equal(got.entrypoint, test.entrypoint) || !slices.Equal(got.arguments, test.arguments) {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
	}
}

// Names are valid for engines, and differ between dispatches.
func TestNamesAreValidAndDistinct(t *testing.T) {
	id := rapid.Custom(func(t *rapid.T) executor.Identity {
		part := rapid.OneOf(rapid.StringMatching(`[a-z0-9.-]{1,63}`), rapid.String(), rapid.StringN(150, 300, -1))
		return executor.Identity{
			Run: part.Draw(t, "run"), Chain: rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).Draw(t, "chain"),
			Task: part.Draw(t, "task"), Node: "n", Fleet: "f",
			Index: rapid.Int32Range(-1, 100_000).Draw(t, "index"), Attempt: rapid.Int32Range(0, 9).Draw(t, "attempt"),
			Claim: rapid.Int32Range(1, 1000).Draw(t, "claim"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a := id.Draw(t, "id")
		name := Name(a)
		if len(name) > maxName || !strings.HasPrefix(name, "switchyard-") || strings.ContainsFunc(name, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", r)
		}) {
			t.Fatalf("name %q", name)
		}
		b := a
		b.Claim++
		c := a
		c.Run += "x"
		d := a
		d.Chain = "x" + d.Chain
		if Name(b) == name || Name(c) == name || Name(d) == name {
			t.Fatalf("two have the name %q", name)
		}
		gotID, got, ok := identity(labels(executor.Attempt{ID: "id", Identity: a}))
		if !ok || gotID != "id" || got != a {
			t.Fatalf("labels are read as %q, %+v, %v", gotID, got, ok)
		}
	})
	if _, _, ok := identity(map[string]string{labelID: "x", labelIndex: "one"}); ok {
		t.Error("labels of somebody else are read")
	}
}

func TestContainerIsBoundToItsNUMANode(t *testing.T) {
	sys := fstest.MapFS{"node1/cpulist": {Data: []byte("4-7\n")}, "node2/cpulist": {Data: []byte("\n")}}
	for node, want := range map[int32]*numaSet{1: {cpus: "4-7", mems: "1"}, 2: nil, 3: nil} {
		a := executor.Attempt{Binding: executor.Binding{NUMANode: &node}}
		set, err := numaOf(sys, a)
		if (err == nil) != (want != nil) || want != nil && *set != *want {
			t.Errorf("node %d: %+v, %v", node, set, err)
		}
		a.Binding.NUMAOptional = true
		if set, err := numaOf(sys, a); err != nil || (set != nil) != (want != nil) {
			t.Errorf("node %d, optional: %+v, %v", node, set, err)
		}
	}
	if set, err := numaOf(sys, executor.Attempt{}); set != nil || err != nil {
		t.Errorf("not bound: %+v, %v", set, err)
	}
}

// Paths in the attempt's directories become paths inside the container; others stay unchanged.
func TestPathsOfTheNodeBecomePathsInTheContainer(t *testing.T) {
	a := executor.Attempt{Dirs: executor.Dirs{Workspace: "/w/a", Temp: "/w/a/tmp", Shared: "/s"}}
	for value, want := range map[string]string{
		"/w/a": "/switchyard", "/w/a/x": "/switchyard/x", "/w/a/tmp": "/local_temp", "/w/a/tmp/y": "/local_temp/y", "/w/a/tmpx": "/switchyard/tmpx",
		"/w/ab": "/w/ab", "/s": "/shared", "/s/x": "/shared/x", "/sx": "/sx", "": "", "w/a": "w/a",
	} {
		if got := pathIn(value, a); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
		elsewhere := a
		elsewhere.Dirs.Temp = "/fast/a"
		if got := pathIn(strings.Replace(value, "/w/a/tmp", "/fast/a", 1), elsewhere); value != "/w/a/tmpx" && got != want {
			t.Errorf("with temporary files elsewhere, %q becomes %q, want %q", value, got, want)
		}
		if got := pathIn(value, executor.Attempt{}); got != value {
			t.Errorf("without directories, %q becomes %q", value, got)
		}
	}
}

// Links that a container places in its workspace do not change modes outside of it.
func TestPermissionChangesFollowNoLink(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	victim := outside + "/victim"
	write(t, victim, 0o640)
	write(t, dir+"/input.json", 0o600)
	link(t, victim, dir+"/output")
	link(t, outside, dir+"/tmp")
	for _, move := range []func(string) error{openPermissions, restorePermissions} {
		if err := move(dir); err != nil {
			t.Fatal(err)
		}
		if got := modeOf(t, victim); got != 0o640 {
			t.Errorf("a file outside of the workspace has the mode %o", got)
		}
	}
	if got := modeOf(t, dir+"/input.json"); got != 0o600 {
		t.Errorf("the input has the mode %o", got)
	}
}

// A container gets the standing mounts of its node, except where its spec mounts something else.
func TestSpecOverridesStandingMount(t *testing.T) {
	all := mounts(request{
		spec:     &v1.ContainerSpec{Mounts: []*v1.Mount{{HostPath: "/own", ContainerPath: "/data/"}}},
		standing: []*v1.Mount{{HostPath: "/srv/data", ContainerPath: "/data"}, {HostPath: "/srv/models", ContainerPath: "/models", ReadOnly: true}},
	})
	want := []mount.Mount{
		{Type: mount.TypeBind, Source: "/own", Target: "/data/"},
		{Type: mount.TypeBind, Source: "/srv/models", Target: "/models", ReadOnly: true},
	}
	if !slices.EqualFunc(all, want, func(a, b mount.Mount) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("it mounts %+v, want %+v", all, want)
	}
}
