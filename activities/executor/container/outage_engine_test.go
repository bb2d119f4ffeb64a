//go:build linux && engines

package container_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// nothingOn waits until an engine has no containers. Containers that could not be removed are
// removed when the engine is back.
func nothingOn(t *testing.T, engine *enginetest.Private) {
	t.Helper()
	testneeds.Await(t, "the engine has no container", func() bool {
		all, err := engine.Docker.ContainerList(context.Background(), container.ListOptions{All: true})
		return err == nil && len(all) == 0
	})
}

// Containers of an engine with live-restore continue when the engine is killed and restarted, and
// their output arrives once.
func TestLongEngineRestartsUnderContainer(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	engine := enginetest.Own(t, "--live-restore")
	e := newExecutor(t, containers.Options{Host: engine.Host})
	dir := t.TempDir()
	makeTemp(t, dir)
	const n = 100
	a, out, errs := enginetest.Attempt(t, "build", map[string]any{"command": fmt.Sprintf(
		`echo ready; echo of stderr >&2; printf unfinished; while [ ! -e $FLAG ]; do sleep 0.05; done; echo " line"; i=0
		while [ $i -lt %d ]; do i=$((i+1)); echo $i; echo "$i of stderr" >&2; sleep 0.05
		while [ $i = 30 -a ! -e $FLAG.2 ]; do sleep 0.05; done; done; exit 5`, n)})
	a.Dirs.Workspace, a.Env = dir, map[string]string{"FLAG": dir + "/flag"}
	ended := enginetest.Begin(t, t.Context(), e, a)
	out.Await(t, "unfinished")
	engine.Kill()
	engine.Start()
	touch(t, dir+"/flag")
	// An engine loses the output that it holds when it ends, but not what is printed while it is
	// down.
	out.Await(t, "\n30\n")
	errs.Await(t, "\n30 of")
	engine.Stop()
	touch(t, dir+"/flag.2")
	engine.Start()
	r := enginetest.End(t, ended)
	if r.Err != nil || r.ExitCode != 5 || r.Stopped {
		t.Errorf("result %+v, error %v, want exit code 5", r.Result, r.Err)
	}
	wantOut, wantErrs := "ready\nunfinished line\n", "of stderr\n"
	for i := range n {
		wantOut += fmt.Sprintf("%d\n", i+1)
		wantErrs += fmt.Sprintf("%d of stderr\n", i+1)
	}
	if out.String() != wantOut {
		t.Errorf("standard output is not whole, or comes twice: %q", out)
	}
	if errs.String() != wantErrs {
		t.Errorf("standard error is not whole, or comes twice: %q", errs)
	}
	nothingOn(t, engine)
}

// A container that ends with its engine is a fault of the node, not a failed task.
func TestEngineGoesDownWithContainer(t *testing.T) {
	t.Parallel()
	engine := enginetest.Own(t)
	goesDownWithContainer(t, engine, newExecutor(t, containers.Options{Host: engine.Host}), "echo ready; sleep 1000", engine.Kill)
}

// goesDownWithContainer starts a container and takes its engine down.
func goesDownWithContainer(t *testing.T, engine *enginetest.Private, e *containers.Executor, command string, takeDown func()) {
	a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": command})
	ended := enginetest.Begin(t, t.Context(), e, a)
	out.Await(t, "ready")
	takeDown()
	testneeds.Await(t, "the engine is missed", func() bool { return e.Available() != nil })
	engine.Start()
	if r := enginetest.End(t, ended); r.Err == nil || executor.AsStartError(r.Err) != nil {
		t.Errorf("result %+v, error %v, want a fault of the node", r.Result, r.Err)
	}
	nothingOn(t, engine)
	testneeds.Await(t, "the engine is there again", func() bool { return e.Available() == nil })
}

func TestLongEngineGoesDownWithContainer(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	engine := enginetest.Own(t)
	e := newExecutor(t, containers.Options{Host: engine.Host})
	for name, test := range map[string]struct {
		command string
		down    func()
	}{
		"killed":                     {"echo ready; sleep 1000", engine.Kill},
		"stopped":                    {"echo ready; sleep 1000", engine.Stop},
		"stopped, program cleans up": {"trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done", engine.Stop},
	} {
		t.Run(name, func(t *testing.T) { goesDownWithContainer(t, engine, e, test.command, test.down) })
	}
	t.Run("ends by itself meanwhile", func(t *testing.T) {
		dir := t.TempDir()
		a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo ready; while [ ! -e $FLAG ]; do sleep 0.05; done; exit 3"})
		a.Dirs.Workspace, a.Env = dir, map[string]string{"FLAG": dir + "/flag"}
		makeTemp(t, dir)
		ended := enginetest.Begin(t, t.Context(), e, a)
		out.Await(t, "ready")
		pids := processesIn(t, engine, a)
		engine.Kill()
		touch(t, dir+"/flag")
		testneeds.Await(t, "the container has ended", func() bool { return !anyAlive(pids) })
		engine.Start()
		if r := enginetest.End(t, ended); r.Err != nil || r.ExitCode != 3 {
			t.Errorf("result %+v, error %v, output %q, want the program's own", r.Result, r.Err, out)
		}
		nothingOn(t, engine)
	})
	t.Run("must end meanwhile", func(t *testing.T) {
		a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo ready; trap '' TERM; while :; do sleep 0.05; done"})
		a.Grace = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := enginetest.Begin(t, ctx, e, a)
		out.Await(t, "ready")
		pids := processesIn(t, engine, a)
		engine.Kill()
		cancel()
		if r := enginetest.End(t, ended); r.Err != nil || !r.Stopped || r.Signal != "SIGKILL" {
			t.Errorf("result %+v, error %v, want one stopped by SIGKILL", r.Result, r.Err)
		}
		if anyAlive(pids) {
			t.Error("a process is left")
		}
		engine.Start()
		nothingOn(t, engine)
	})
}

// A mounted directory keeps its contents, and nothing stays mounted, however the engine ends.
func TestLongMountOutlivesEngine(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	for name, args := range map[string][]string{"stopped": nil, "killed": nil, "restored": {"--live-restore"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := enginetest.Own(t, args...)
			allowed := t.TempDir()
			dir := filepath.Join(allowed, "in")
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			touch(t, dir+"/data")
			e := newExecutor(t, containers.Options{Host: engine.Host, Policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: allowed}}}})
			a, out, _ := enginetest.Attempt(t, "build", map[string]any{
				"command": "echo ready; while [ ! -e /x/flag ]; do sleep 0.05; done; test -e /x/data",
				"mounts":  []any{map[string]any{"hostPath": dir, "containerPath": "/x"}},
			})
			ended := enginetest.Begin(t, t.Context(), e, a)
			out.Await(t, "ready")
			if name == "stopped" {
				engine.Stop()
			} else {
				engine.Kill()
			}
			engine.Start()
			touch(t, dir+"/flag")
			if r := enginetest.End(t, ended); (r.Err == nil) != (name == "restored") || r.ExitCode != 0 {
				t.Errorf("result %+v, error %v", r.Result, r.Err)
			}
			nothingOn(t, engine)
			// Docker 20.10 miscounts the mounts of a running container that it finds on start.
			if name != "restored" {
				testneeds.Await(t, "no volume is left", func() bool {
					if _, err := e.Survivors(t.Context(), a.Identity.Node); err != nil {
						return false
					}
					volumes, err := engine.Docker.VolumeList(t.Context(), volume.ListOptions{})
					return err == nil && len(volumes.Volumes) == 0
				})
			}
			if _, err := os.Stat(dir + "/data"); err != nil {
				t.Error(err)
			}
		})
	}
}

// An engine that does not answer delays no attempt for longer than necessary.
func TestLongEngineHangs(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	engine := enginetest.Own(t)
	e := newExecutor(t, containers.Options{Host: engine.Host})
	dir := t.TempDir()
	makeTemp(t, dir)
	patient, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo ready; while [ ! -e $FLAG ]; do sleep 0.05; done; echo done; exit 3"})
	patient.Dirs.Workspace, patient.Env = dir, map[string]string{"FLAG": dir + "/flag"}
	goesOn := enginetest.Begin(t, t.Context(), e, patient)
	out.Await(t, "ready")
	leased, leasedOut, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo ready; trap '' TERM; while :; do sleep 0.05; done"})
	leased.Grace = time.Hour
	leased.Lease = executor.NewLease(executor.Now(), time.Hour, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mustEnd := enginetest.Begin(t, ctx, e, leased)
	leasedOut.Await(t, "ready")
	pids := processesIn(t, engine, leased)

	engine.Hang()
	defer engine.Resume()
	late, _, _ := enginetest.Attempt(t, "build", map[string]any{"command": "true"})
	if _, err := e.Run(t.Context(), late, func() { t.Error("it has started") }); err == nil || executor.AsStartError(err) != nil {
		t.Errorf("error %v, want that the engine does not answer", err)
	}
	if e.Available() == nil {
		t.Error("an engine that hangs is available")
	}
	leased.Lease.Replace(executor.Now(), 0, 3*time.Second)
	cancel()
	r := enginetest.End(t, mustEnd)
	if r.Err != nil || !r.Stopped || r.Signal != "SIGKILL" || anyAlive(pids) {
		t.Errorf("result %+v, error %v, processes %v; want one stopped by SIGKILL", r.Result, r.Err, anyAlive(pids))
	}
	if late := executor.Now().Sub(leased.Lease.KillAt()); late > time.Minute {
		t.Errorf("it ended %v after its lease", late)
	}
	touch(t, dir+"/flag")
	engine.Resume()
	if r := enginetest.End(t, goesOn); r.Err != nil || r.ExitCode != 3 || out.String() != "ready\ndone\n" {
		t.Errorf("result %+v, error %v, output %q, want the program's own", r.Result, r.Err, out)
	}
	nothingOn(t, engine)
}

// Without its engine, a container is ended through its processes.
func TestRemoveWithoutEngineKillsProcesses(t *testing.T) {
	t.Parallel()
	e, away := newExecutor(t, containers.Options{}), newExecutor(t, containers.Options{Host: "unix://" + filepath.Join(t.TempDir(), "none")})
	a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "trap '' TERM; echo ready; while :; do sleep 0.1; done"})
	var id string
	a.Located = func(w *v1.Workload) { id = w.GetContainer() }
	ended := enginetest.Begin(t, t.Context(), e, a)
	out.Await(t, "ready")
	testneeds.Await(t, "the engine is known to be away", func() bool { return away.Available() != nil })
	if err := away.Remove(t.Context(), executor.Leftover{ID: a.ID}); err == nil {
		t.Error("a container was removed without an engine")
	}
	if err := away.Remove(t.Context(), executor.Leftover{ID: a.ID, Workload: &v1.Workload{Container: id}}); err == nil {
		t.Error("a container was removed without an engine")
	}
	if r := enginetest.End(t, ended); r.Signal != "SIGKILL" {
		t.Errorf("result %+v, error %v, want one killed by SIGKILL", r.Result, r.Err)
	}
}
