package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"switchyard/cli/exit"
	"switchyard/cli/stack"
	v1 "switchyard/proto/switchyard/v1"
)

func TestContainerFlags(t *testing.T) {
	dir := t.TempDir()
	auth, open := filepath.Join(dir, "auth.json"), filepath.Join(dir, "open.json")
	for path, text := range map[string]string{auth: `{"username": "u", "password": "p", "registry": "ghcr.io"}`, open: `{"username": "u", "password": "p"}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := containerFlags{
		privileged: true, mounts: []string{"/data//x/", "/ro:ro"}, capabilities: []string{"cap_net_admin", "NET_ADMIN", "all"}, auths: []string{"hub=" + auth},
	}
	got, err := flags.config()
	if err != nil {
		t.Fatal(err)
	}
	want := stack.ContainerConfig{
		Policy: &v1.ContainerPolicy{
			Privileged: true, Capabilities: []string{"NET_ADMIN", "ALL"},
			Mounts: []*v1.MountRule{{Path: "/data/x"}, {Path: "/ro", ReadOnly: true}},
		},
		RegistryAuth: map[string]string{"hub": auth},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	for want, bad := range map[string]containerFlags{
		"absolute path":          {mounts: []string{"data"}},
		"a Linux capability":     {capabilities: []string{"net admin"}},
		"write key=value":        {auths: []string{"hub"}},
		`add "registry": "HOST"`: {auths: []string{"hub=" + open}},
		"no such file":           {auths: []string{"hub=" + filepath.Join(dir, "none")}},
		"--allow-mount :ro: use": {mounts: []string{":ro"}},
	} {
		if _, err := bad.config(); exit.CodeOf(t.Context(), err) != exit.CodeUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; it should say %q", bad, err, want)
		}
	}
}
