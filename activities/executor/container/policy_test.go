package container

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// newFor returns an executor for tests inside the package.
func newFor(t *testing.T, o Options) *Executor {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestPolicyRefusesWhatIsNotAllowed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"open/in", "closed"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"open/file", "closed/file"} {
		if err := os.WriteFile(at(name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"open/out": at("closed"), "open/inside": "in", "alias": at("open")} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", at("open/s.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	mounting := func(paths ...string) *v1.ContainerSpec {
		s := &v1.ContainerSpec{}
		for _, p := range paths {
			s.Mounts = append(s.Mounts, &v1.Mount{HostPath: p, ContainerPath: "/x"})
		}
		return s
	}
	open := &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: at("open")}}}
	tests := map[string]struct {
		policy *v1.ContainerPolicy
		host   string
		spec   *v1.ContainerSpec
		want   string // part of the error, or "" if the spec is allowed
		fault  bool   // of the node
		source string // of the only mount, afterwards
	}{
		"harmless":        {spec: &v1.ContainerSpec{Network: "none", User: "1000"}},
		"privileged":      {spec: &v1.ContainerSpec{Privileged: true}, want: "--allow-privileged"},
		"host network":    {spec: &v1.ContainerSpec{Network: "host"}, want: "--allow-host-network"},
		"joined network":  {policy: &v1.ContainerPolicy{HostNetwork: true}, spec: &v1.ContainerSpec{Network: "container:other"}, want: `"container:"`},
		"namespace":       {policy: &v1.ContainerPolicy{HostNetwork: true}, spec: &v1.ContainerSpec{Network: "ns:/proc/1/ns/net"}, want: `"ns:"`},
		"capability":      {spec: &v1.ContainerSpec{CapAdd: []string{"cap_sys_admin"}}, want: "--allow-cap SYS_ADMIN"},
		"no mounts":       {spec: mounting(at("open")), want: "--allow-mount " + at("open")},
		"allowed mount":   {policy: open, spec: mounting(at("open/in")), source: at("open/in")},
		"missing":         {policy: open, spec: mounting(at("open/none")), want: "no such file or directory", fault: true},
		"missing, closed": {policy: open, spec: mounting(at("none")), want: "--allow-mount"},
		"dots":            {policy: open, spec: mounting(at("open") + "/../closed"), want: "--allow-mount " + at("closed")},
		"link inside":     {policy: open, spec: mounting(at("open/inside")), source: at("open/in")},
		"link out":        {policy: open, spec: mounting(at("open/out")), want: "resolves to " + at("closed")},
		"rule is a link":  {policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: at("alias")}}}, spec: mounting(at("alias/in")), source: at("open/in")},
		"to read alone": {policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: at("open"), ReadOnly: true}}}, spec: mounting(at("open/in")),
			want: "readOnly: true"},
		"file": {policy: open, spec: mounting(at("open/file")), want: "--allow-mount " + at("open/file")},
		"named file": {policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: at("closed/file")}}}, spec: mounting(at("closed/file")),
			source: at("closed/file")},
		"named file in what may be written": {policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: at("open")}, {Path: at("open/file")}}},
			spec: mounting(at("open/file")), want: "could replace it"},
		"socket in it":        {policy: open, spec: mounting(at("open/s.sock")), want: "socket " + at("open/s.sock")},
		"around the engine's": {policy: open, host: "unix://" + at("open/s.sock"), spec: mounting(at("open")), want: "socket " + at("open/s.sock")},
		"named socket": {policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: at("open/s.sock")}}}, spec: mounting(at("open/s.sock")),
			source: at("open/s.sock")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			held, err := newFor(t, Options{Host: tt.host, Policy: tt.policy}).checkPolicy(tt.spec)
			defer held.close()
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Fatalf("%v; it should say %q", err, tt.want)
			case tt.want != "" && tt.fault == (executor.AsStartError(err) != nil):
				t.Errorf("%v is taken for a fault of the wrong one", err)
			}
			if tt.source != "" && tt.spec.GetMounts()[0].GetHostPath() != tt.source {
				t.Errorf("mounts %s, not %s", tt.spec.GetMounts()[0].GetHostPath(), tt.source)
			}
		})
	}
}
