package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestNeeds(t *testing.T) {
	if needs := Needs(&v1.ContainerSpec{Image: "x", Network: "none"}); needs != nil {
		t.Errorf("a harmless container needs %v", needs)
	}
	got := Needs(&v1.ContainerSpec{
		Privileged: true, Network: "host", CapAdd: []string{"cap_sys_admin", "NET_ADMIN", "CAP_NET_ADMIN"},
		Mounts: []*v1.Mount{{HostPath: "/data/../srv//x/", ContainerPath: "/x"}, {HostPath: "/d", ReadOnly: true}},
	})
	want := &historyv1.ContainerNeeds{
		Privileged: true, HostNetwork: true, Capabilities: []string{"NET_ADMIN", "SYS_ADMIN"},
		Mounts: []*v1.MountRule{{Path: "/srv/x"}, {Path: "/d", ReadOnly: true}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	write, read := func(p string) *v1.MountRule { return &v1.MountRule{Path: p} }, func(p string) *v1.MountRule { return &v1.MountRule{Path: p, ReadOnly: true} }
	mounting := func(m ...*v1.MountRule) *historyv1.ContainerNeeds { return &historyv1.ContainerNeeds{Mounts: m} }
	rules := func(m ...*v1.MountRule) *v1.ContainerPolicy { return &v1.ContainerPolicy{Mounts: m} }
	capable := func(c ...string) *historyv1.ContainerNeeds { return &historyv1.ContainerNeeds{Capabilities: c} }
	tests := map[string]struct {
		allowed *v1.ContainerPolicy
		needs   *historyv1.ContainerNeeds
		want    []string
	}{
		"nothing":            {},
		"privileged":         {nil, &historyv1.ContainerNeeds{Privileged: true}, []string{"privileged containers (switchyard worker --allow-privileged)"}},
		"privileged allowed": {&v1.ContainerPolicy{Privileged: true}, &historyv1.ContainerNeeds{Privileged: true}, nil},
		"host network":       {nil, &historyv1.ContainerNeeds{HostNetwork: true}, []string{"the host's network (switchyard worker --allow-host-network)"}},
		"host network too":   {&v1.ContainerPolicy{HostNetwork: true}, &historyv1.ContainerNeeds{HostNetwork: true}, nil},
		"of another command": {&v1.ContainerPolicy{Command: "run"}, &historyv1.ContainerNeeds{HostNetwork: true, Mounts: []*v1.MountRule{read("/data")}},
			[]string{"the host's network (switchyard run --allow-host-network)", "mounting /data (switchyard run --allow-mount /data)"}},
		"no mounts":        {nil, mounting(read("/data")), []string{"mounting /data (switchyard worker --allow-mount /data)"}},
		"the directory":    {rules(write("/data")), mounting(write("/data"), read("/data")), nil},
		"below it":         {rules(write("/data")), mounting(write("/data/a/b")), nil},
		"above it":         {rules(write("/data/a")), mounting(read("/data")), []string{"mounting /data (switchyard worker --allow-mount /data)"}},
		"beside it":        {rules(write("/data")), mounting(read("/database")), []string{"mounting /database (switchyard worker --allow-mount /database)"}},
		"the root":         {rules(write("/")), mounting(write("/"), write("/etc")), nil},
		"to read":          {rules(read("/data")), mounting(read("/data/a")), nil},
		"to write":         {rules(read("/data")), mounting(write("/data/a")), []string{"mounting /data/a without readOnly: true (switchyard worker --allow-mount /data/a)"}},
		"to write a part":  {rules(read("/data"), write("/data/a")), mounting(write("/data/a")), nil},
		"engine's socket":  {rules(write("/var/run"), write("/")), mounting(read("/var/run/docker.sock")), []string{"mounting /var/run/docker.sock (switchyard worker --allow-mount /var/run/docker.sock)"}},
		"socket by itself": {rules(write("/var/run/docker.sock")), mounting(write("/var/run/docker.sock")), nil},
		"capabilities": {&v1.ContainerPolicy{Capabilities: []string{"NET_ADMIN"}}, capable("NET_ADMIN", "SYS_PTRACE"),
			[]string{"the capability SYS_PTRACE (switchyard worker --allow-cap SYS_PTRACE)"}},
		"all for one":       {&v1.ContainerPolicy{Capabilities: []string{"ALL"}}, capable("SYS_ADMIN", "ALL"), nil},
		"one is not all":    {&v1.ContainerPolicy{Capabilities: []string{"SYS_ADMIN"}}, capable("ALL"), []string{"the capability ALL (switchyard worker --allow-cap ALL)"}},
		"several at a time": {nil, &historyv1.ContainerNeeds{Privileged: true, HostNetwork: true, Mounts: []*v1.MountRule{read("/a"), read("/b")}}, make([]string, 4)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Refusals(tt.allowed, tt.needs)
			if len(tt.want) > 1 && len(got) == len(tt.want) {
				return
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestRulesAllowOnlyBelow checks that a path is refused unless a rule is a prefix of it, element by element, and that a path
// below a writable rule is allowed.
func TestRulesAllowOnlyBelow(t *testing.T) {
	element := rapid.SampledFrom([]string{"a", "b", "ab"})
	dir := rapid.Custom(func(t *rapid.T) string { return "/" + strings.Join(rapid.SliceOfN(element, 0, 4).Draw(t, "path"), "/") })
	rapid.Check(t, func(t *rapid.T) {
		var allowed v1.ContainerPolicy
		wanted := dir.Draw(t, "wanted")
		inside := false
		for _, p := range rapid.SliceOfN(dir, 0, 4).Draw(t, "rules") {
			allowed.Mounts = append(allowed.Mounts, &v1.MountRule{Path: p})
			inside = inside || p == "/" || strings.HasPrefix(wanted+"/", p+"/")
		}
		refused := Refusals(&allowed, &historyv1.ContainerNeeds{Mounts: []*v1.MountRule{{Path: wanted}}})
		if inside != (len(refused) == 0) {
			t.Fatalf("%s with %v: refused %q", wanted, allowed.GetMounts(), refused)
		}
	})
}
