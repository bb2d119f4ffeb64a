//go:build linux && engines

package vps_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// dockerRun runs the engine's own client.
func dockerRun(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return string(out)
}

// A machine needs no process from its spec, reaps its children and has the settings of its spec.
func TestMachineIsWhatItsSpecSays(t *testing.T) {
	t.Parallel()
	allowed := t.TempDir()
	e, _ := newExecutor(t, containers.Options{Policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: allowed}}}})
	a, out := attempt(t, map[string]any{
		"user": "worker", "workingDirectory": "/tmp", "shmSizeMb": 3,
		"mounts": []any{map[string]any{"hostPath": allowed, "containerPath": "/data"}},
	})
	a.Limits = executor.Limits{Cores: 0.5, Memory: 64 << 20}
	a.Binding.GPUs = []string{}
	m := start(t, e, a, out)
	for command, want := range map[string]string{
		"id -u": "1000\n", "pwd": "/tmp\n", "echo $GREETING": "hello\n", "echo $NVIDIA_VISIBLE_DEVICES": "void\n", "test -d /data && echo yes": "yes\n",
		"(sleep 0.1 &); sleep 0.5; n=0; while ps -o stat | grep -q Z && [ $n -lt 600 ]; do n=$((n+1)); sleep 0.1; done; ps -o stat | grep Z; true": "",
	} {
		if got := m.exec(t, command); got != want {
			t.Errorf("%s prints %q, want %q", command, got, want)
		}
	}
	if got := dockerRun(t, "inspect", "-f", "{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.ShmSize}} {{index .Config.Labels \"switchyard.type\"}}", m.name); got != "500000000 67108864 3145728 vps\n" {
		t.Errorf("the container has %q", got)
	}
	m.stop(errors.New("killed"))
	if r := m.end(t); r.Err != nil || !r.Stopped || r.Signal != "SIGTERM" || r.Container == "" || r.Image == "" {
		t.Errorf("%+v, error %v, want one stopped by SIGTERM", r.Result, r.Err)
	}
	nothingLeft(t, a)
}

// An image needs neither a shell nor a library.
func TestImageNeedsNoShell(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	name := fmt.Sprintf("switchyard-test/empty-%d:1", time.Now().UnixNano())
	tar := exec.Command("tar", "-c", "-C", t.TempDir(), ".")
	tree, err := tar.StdoutPipe()
	if err == nil {
		err = tar.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said, err := docker.ImageImport(t.Context(), image.ImportSource{Source: tree, SourceName: "-"}, name, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said.Close()
	if err := tar.Wait(); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "the image is there", func() bool { _, err := docker.ImageInspect(t.Context(), name); return err == nil })
	t.Cleanup(func() { _, _ = docker.ImageRemove(context.Background(), name, image.RemoveOptions{Force: true}) })
	e, _ := newExecutor(t, containers.Options{})
	a, out := attempt(t, map[string]any{"image": name})
	m := start(t, e, a, out)
	if state := dockerRun(t, "inspect", "-f", "{{.State.Running}}", m.name); state != "true\n" {
		t.Error("it does not run")
	}
	m.stop(nil)
	if r := m.end(t); r.Err != nil || !r.Stopped || r.Signal != "SIGTERM" {
		t.Errorf("%+v, error %v, want one stopped by SIGTERM", r.Result, r.Err)
	}
}

func TestInitReplacesTheProgram(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	a, out := attempt(t, script("echo pid $$; sleep 0.1; exit 7"))
	m := start(t, e, a, out)
	if r := m.end(t); r.Err != nil || r.Stopped || r.ExitCode != 7 || out.String() != "pid 1\n" {
		t.Errorf("%+v, error %v, output %q; want its own end as the first process", r.Result, r.Err, out)
	}
	nothingLeft(t, a)
}

func TestBadSpecsAreRefused(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	for name, test := range map[string]struct {
		fields map[string]any
		says   string
	}{
		"other backend":   {map[string]any{"backend": "xen"}, "unknown"},
		"no image":        {map[string]any{"image": ""}, "neither image nor environment"},
		"unknown field":   {map[string]any{"command": "true"}, "vps spec"},
		"privileged":      {map[string]any{"privileged": true}, "does not allow"},
		"no such program": {map[string]any{"init": []any{"/none"}}, "no such program"},
		"no such user":    {map[string]any{"user": "nobody-here"}, "nobody-here"},
		"directory":       {map[string]any{"workingDirectory": "a/b"}, "absolute"},
	} {
		a, _ := attempt(t, test.fields)
		_, err := e.Run(t.Context(), a, func() { t.Errorf("%s: it has started", name) })
		if executor.AsStartError(err) == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error %v, want a StartError that says %q", name, err, test.says)
		}
		nothingLeft(t, a)
	}
}

// A machine that is let go continues to run, is found as a survivor of its own type only, and continues under the next
// worker.
func TestMachineOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	e, c := newExecutor(t, containers.Options{})
	a, out := attempt(t, script(`trap 'echo bye; exit 3' TERM; echo first; while [ ! -e /tmp/flag ]; do sleep 0.05; done; echo second; while :; do sleep 0.05; done`))
	m := start(t, e, a, out)
	m.prints(t, "first")
	m.stop(executor.ErrLetGo)
	if r := m.end(t); r.Err != nil || !r.Stopped {
		t.Errorf("%+v, error %v, want one stopped", r.Result, r.Err)
	}
	if err := e.Pause(t.Context(), a.ID); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v of what was let go, want ErrNotRunning", err)
	}
	if found, err := c.Survivors(t.Context(), a.Identity.Node); err != nil || len(found) > 0 {
		t.Errorf("survivors that are containers: %+v, %v", found, err)
	}
	if _, err := c.Reattach(t.Context(), a); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v of the container's executor, want ErrNotRunning", err)
	}
	if err := c.Remove(t.Context(), executor.Leftover{ID: a.ID}); err != nil {
		t.Error(err)
	}
	found, err := e.Survivors(t.Context(), a.Identity.Node)
	if err != nil || len(found) != 1 || found[0].ID != a.ID || found[0].Identity != a.Identity || !found[0].Running || found[0].Env["GREETING"] != "hello" {
		t.Fatalf("survivors %+v, %v, want the machine", found, err)
	}
	later, _ := newExecutor(t, containers.Options{})
	m = reattach(t, later, a)
	m.prints(t, "first\n")
	m.exec(t, "touch /tmp/flag")
	m.prints(t, "second\n")
	m.stop(errors.New("killed"))
	if r := m.end(t); r.Err != nil || !r.Stopped || r.ExitCode != 3 || m.out.String() != "first\nsecond\nbye\n" {
		t.Errorf("%+v, error %v, output %q; want one stopped", r.Result, r.Err, m.out)
	}
	nothingLeft(t, a)
}

func TestEndWithoutAWorkerIsReportedByTheNextOne(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	a, out := attempt(t, script(`echo ready; while [ ! -e /tmp/flag ]; do sleep 0.05; done; exit 5`))
	m := start(t, e, a, out)
	m.prints(t, "ready")
	m.stop(executor.ErrLetGo)
	m.end(t)
	m.exec(t, "touch /tmp/flag")
	testneeds.Await(t, "it has ended", func() bool {
		found, err := e.Survivors(t.Context(), a.Identity.Node)
		return err == nil && len(found) == 1 && !found[0].Running
	})
	if r := reattach(t, e, a).end(t); r.Err != nil || r.ExitCode != 5 || r.Stopped {
		t.Errorf("%+v, error %v, want exit code 5", r.Result, r.Err)
	}
	nothingLeft(t, a)
}

func TestStopEndsTheMachineGracefully(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	for _, paused := range []bool{false, true} {
		a, out := attempt(t, nil)
		m := start(t, e, a, out)
		if paused {
			if err := e.Pause(t.Context(), a.ID); err != nil {
				t.Error(err)
			}
		}
		m.stop(errors.New("killed"))
		if r := m.end(t); r.Err != nil || !r.Stopped || r.Signal != "SIGTERM" {
			t.Errorf("%+v, error %v, want one stopped by SIGTERM", r.Result, r.Err)
		}
		if err := e.Pause(t.Context(), a.ID); !errors.Is(err, executor.ErrNotRunning) {
			t.Errorf("error %v after its end, want ErrNotRunning", err)
		}
		nothingLeft(t, a)
	}
}

// A restart keeps the files and the attempt, and ends the processes.
func TestRestartKeepsFilesAndAttempt(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	if err := e.Restart(t.Context(), "none"); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
	a, out := attempt(t, script(`trap 'echo bye; exit 0' TERM; n=$(cat /tmp/count 2>/dev/null); echo x >>/tmp/count; echo start $n; while :; do sleep 0.05; done`))
	m := start(t, e, a, out)
	m.prints(t, "start")
	want := "start\n"
	for i := range 3 {
		if i == 2 {
			if err := e.Pause(t.Context(), a.ID); err != nil {
				t.Error(err)
			}
		}
		if err := e.Restart(t.Context(), a.ID); err != nil {
			t.Error(err)
		}
		want += "bye\nstart" + strings.Repeat(" x", i+1) + "\n"
		m.prints(t, want)
	}
	if len(m.ended) > 0 {
		t.Fatalf("it has ended: %+v", <-m.ended)
	}
	// After a restart, the machine's own end still ends the attempt.
	_ = exec.Command("docker", "exec", m.name, "kill", "-TERM", "1").Run() // it may end with the machine
	if r := m.end(t); r.Err != nil || r.ExitCode != 0 || r.Stopped || m.out.String() != want+"bye\n" {
		t.Errorf("%+v, error %v, output %q, want %q", r.Result, r.Err, m.out, want+"bye\n")
	}
	nothingLeft(t, a)
}

// A restart ends the processes in the machine, and a stop during the restart ends the machine.
func TestStopDuringRestart(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	a, out := attempt(t, script(`trap 'echo asked; sleep 1; exit 0' TERM; echo ready; while :; do sleep 0.05; done`))
	a.Grace = 20 * time.Second // the restarted init process may be asked to end before it has set its trap
	m := start(t, e, a, out)
	m.prints(t, "ready")
	restarted := make(chan error, 1)
	go func() { restarted <- e.Restart(context.Background(), a.ID) }()
	m.prints(t, "asked") // the restart has begun
	m.stop(errors.New("killed"))
	if r := m.end(t); r.Err != nil || !r.Stopped {
		t.Errorf("%+v, error %v, want one stopped", r.Result, r.Err)
	}
	<-restarted
	nothingLeft(t, a)
}

// A machine with a mount that the engine cannot repeat is not restarted and continues to run.
func TestRestartIsRefusedWithHeldMounts(t *testing.T) {
	t.Parallel()
	allowed := t.TempDir()
	in := allowed + "/in"
	if out, err := exec.Command("mkdir", in).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	e, _ := newExecutor(t, containers.Options{Policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: allowed}}}})
	a, out := attempt(t, map[string]any{"mounts": []any{map[string]any{"hostPath": in, "containerPath": "/data"}}})
	m := start(t, e, a, out)
	for range 2 {
		err := e.Restart(t.Context(), a.ID)
		if _, ok := errors.AsType[*executor.Refusal](err); !ok {
			t.Errorf("error %v, want a Refusal", err)
		}
		m.exec(t, "test -d /data")
		m.stop(executor.ErrLetGo)
		if m.ended != nil {
			m.end(t)
			m = reattach(t, e, a)
			testneeds.Await(t, "it is attached", func() bool { return e.Pause(t.Context(), a.ID) == nil })
			if err := e.Resume(t.Context(), a.ID); err != nil {
				t.Error(err)
			}
		}
	}
}

// An end that is caused through the engine from outside has a clear message.
func TestExternalEndIsReported(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"removed": {[]string{"rm", "-f"}, "removed"},
		"stopped": {[]string{"stop"}, "engine stopped it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, out := attempt(t, nil)
			m := start(t, e, a, out)
			dockerRun(t, append(slices.Clone(test.args), m.name)...)
			if r := m.end(t); r.Err == nil || executor.AsStartError(r.Err) != nil || !strings.Contains(r.Err.Error(), test.says) && !strings.Contains(r.Err.Error(), "engine stopped it") {
				t.Errorf("%+v, error %v, want one that says %q", r.Result, r.Err, test.says)
			}
			nothingLeft(t, a)
		})
	}
	t.Run("restarted", func(t *testing.T) {
		t.Parallel()
		a, out := attempt(t, script("trap 'exit 0' TERM; echo start; while :; do sleep 0.05; done"))
		m := start(t, e, a, out)
		m.prints(t, "start\n")
		dockerRun(t, "restart", m.name)
		m.prints(t, "start\nstart\n")
		m.stop(errors.New("killed"))
		if r := m.end(t); r.Err != nil || !r.Stopped {
			t.Errorf("%+v, error %v", r.Result, r.Err)
		}
	})
}

// A program in the machine that takes too much memory is killed. If it is the init process, the machine ends.
func TestOutOfMemoryIsReported(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	a, out := attempt(t, script("x=$(yes | head -c 300000000); echo $x | wc -c"))
	a.Limits.Memory = 32 << 20
	m := start(t, e, a, out)
	if r := m.end(t); r.Err != nil || !r.OOMKilled || r.ExitCode != 137 {
		t.Errorf("%+v, error %v, want one that took too much memory", r.Result, r.Err)
	}
	b, out := attempt(t, nil)
	b.Limits.Memory = 32 << 20
	m = start(t, e, b, out)
	_ = exec.Command("docker", "exec", m.name, "sh", "-c", "x=$(yes | head -c 300000000); echo $x | wc -c").Run()
	m.stop(errors.New("killed"))
	if r := m.end(t); r.Err != nil || r.OOMKilled || !r.Stopped {
		t.Errorf("%+v, error %v, want one stopped", r.Result, r.Err)
	}
}
