package qemu

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
)

func TestSpecsBecomeMachines(t *testing.T) {
	attempt := func(limits executor.Limits, fields map[string]any) executor.Attempt {
		spec, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		return executor.Attempt{Spec: spec, Limits: limits}
	}
	got, err := newPlan(attempt(executor.Limits{Cores: 1.5, Memory: 512 << 20}, map[string]any{
		"backend": "qemu", "vmImage": "/srv/a.qcow2", "vmDiskSize": "5G", "user": "ann", "sshPublicKey": "# of ann\nssh-ed25519 A me\n\nssh-ed25519 B\n",
	}))
	if err != nil || got.image != "/srv/a.qcow2" || got.diskSize != "5G" || got.user != "ann" || got.cpus != 2 || got.memoryMB != 512 ||
		!slices.Equal(got.keys, []string{"ssh-ed25519 A me", "ssh-ed25519 B"}) {
		t.Errorf("plan %+v, error %v", got, err)
	}
	if got, err := newPlan(attempt(executor.Limits{}, map[string]any{"backend": "qemu", "environment": "desk"})); err != nil ||
		got.image != "desk" || got.user != "root" || got.cpus != 1 || got.memoryMB != 1024 {
		t.Errorf("plan %+v, error %v", got, err)
	}
	for want, a := range map[string]executor.Attempt{
		"set vmImage or environment": attempt(executor.Limits{}, map[string]any{"backend": "qemu"}),
		"needs 64 at least":          attempt(executor.Limits{Memory: 8 << 20}, map[string]any{"environment": "desk"}),
		"not an absolute path":       attempt(executor.Limits{}, map[string]any{"environment": "desk", "workingDirectory": "home"}),
		"is only for containers":     attempt(executor.Limits{}, map[string]any{"environment": "desk", "network": "host"}),
		"it is missing":              {},
	} {
		if _, err := newPlan(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
