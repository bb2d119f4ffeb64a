//go:build linux && engines

package container

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
	v1 "switchyard/proto/switchyard/v1"
)

// A container never sees the target of a link, even if its directory is replaced with the
// link again and again between check and mount.
func TestMountIsHeldWhileExchanged(t *testing.T) {
	const enough = 2
	allowed, outside := t.TempDir(), t.TempDir()
	in, link := filepath.Join(allowed, "in"), filepath.Join(allowed, "link")
	for _, err := range []error{
		os.Mkdir(in, 0o755), os.WriteFile(filepath.Join(in, "mine"), nil, 0o644),
		os.WriteFile(filepath.Join(outside, "secret"), nil, 0o644), os.Symlink(outside, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan struct{})
	var exchanges sync.WaitGroup
	exchanges.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, in, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer exchanges.Wait()
	defer close(over)
	e := newFor(t, Options{Policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: allowed}}}})
	for mounted, refused := 0, 0; mounted < enough || refused == 0; {
		_, out, err := runSpec(t, e, map[string]any{
			"command": "ls /x", "mounts": []any{map[string]any{"hostPath": in, "containerPath": "/x"}},
		})
		switch {
		case err == nil && out == "mine\n":
			mounted++
		case executor.AsStartError(err) != nil && strings.Contains(err.Error(), "resolves to "+outside):
			refused++
		default:
			t.Fatalf("it sees %q, error %v", out, err)
		}
	}
}

// An engine that cannot see this process's descriptors would mount something else, which
// the check detects.
func TestMountOfAnotherDirectoryIsDetected(t *testing.T) {
	t.Parallel()
	docker, busybox := enginetest.Engine(t), enginetest.Image(t)
	e := newFor(t, Options{})
	held, other := t.TempDir(), t.TempDir()
	dir, _, err := openSource(held)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	// Only the modification time may distinguish the two directories.
	if err := os.Chtimes(other, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	spec := &v1.ContainerSpec{Mounts: []*v1.Mount{{HostPath: held, ContainerPath: "/x"}}}
	for from, want := range map[string]string{held: "", other: "cannot see this worker's processes"} {
		c, err := docker.ContainerCreate(t.Context(), &container.Config{Image: busybox, Cmd: []string{"true"}}, &container.HostConfig{
			Mounts: []mount.Mount{{Type: mount.TypeBind, Source: from, Target: "/x"}},
		}, nil, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		defer docker.ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true})
		err = (&running{e: e, id: c.ID}).checkOpenMounts(t.Context(), request{spec: spec, held: openMounts{dir}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v; it should say %q", err, want)
		}
	}
}
