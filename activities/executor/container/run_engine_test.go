//go:build engines

package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// completes runs an attempt and fails the test unless it succeeds.
func completes(t testing.TB, e *containers.Executor, a executor.Attempt, errs *testneeds.Output) {
	t.Helper()
	r, err := e.Run(t.Context(), a, func() {})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("result %+v, error %v; it says %q", r, err, errs)
	}
}

func TestContainerFollowsItsSpec(t *testing.T) {
	t.Parallel()
	const cgroup = "/sys/fs/cgroup" // with the files of version 1 or 2
	a, out, errs := enginetest.Attempt(t, "build", map[string]any{
		"user": "worker:1234", "workingDirectory": "/a/b", "ulimits": []any{map[string]any{"name": "nofile", "soft": 77, "hard": 99}}, "shmSizeMb": 3,
		"args": []any{"x", "y z"}, "command": `echo $1 $0 $#; id -u; id -g; pwd; ulimit -Sn; ulimit -Hn
			df -k /dev/shm | tail -n 1 | (read a b c; echo $b)
			ls /sys/class/net; mount -t tmpfs x /tmp 2>/dev/null || echo refused; echo $SHOWN $NVIDIA_VISIBLE_DEVICES
			cat ` + cgroup + `/cpu/cpu.cfs_quota_us 2>/dev/null || cut -d' ' -f1 ` + cgroup + `/cpu.max
			cat ` + cgroup + `/pids/pids.max 2>/dev/null || cat ` + cgroup + `/pids.max
			cat ` + cgroup + `/cpuset/cpuset.mems 2>/dev/null || cat ` + cgroup + `/cpuset.mems`,
	})
	a.Env, a.Binding.GPUs, a.Binding.NUMANode = map[string]string{"SHOWN": "a b"}, []string{}, new(int32(0))
	a.Limits = executor.Limits{Cores: 0.5, Processes: 55}
	completes(t, newExecutor(t, containers.Options{}), a, errs)
	if want := "x sh 2\n1000\n1234\n/a/b\n77\n99\n3072\nlo\nrefused\na b void\n50000\n55\n0\n"; out.String() != want {
		t.Errorf("it prints %q and %q, want %q", out, errs, want)
	}
	a, out, errs = enginetest.Attempt(t, "build", map[string]any{"command": "echo ok"})
	a.Limits.Cores, a.Binding.NUMANode, a.Binding.NUMAOptional = 4000, new(int32(77)), true
	completes(t, newExecutor(t, containers.Options{}), a, errs)
	if out.String() != "ok\n" {
		t.Errorf("with more cores than it has, it prints %q and %q", out, errs)
	}
}

// Missing resources of the node are a fault of the node; errors in the spec are a fault of
// the task.
func TestFaultsOfTaskAndNodeAreDistinguished(t *testing.T) {
	t.Parallel()
	allow := containers.Options{Policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: "/"}}}}
	for name, test := range map[string]struct {
		fields map[string]any
		change func(*executor.Attempt)
		code   int // of a StartError; 0 means a fault of the node
	}{
		"no image":          {fields: map[string]any{"image": "switchyard-test/none:0", "pullPolicy": "never", "command": "true"}},
		"no network":        {fields: map[string]any{"network": "switchyard-test-none", "command": "true"}},
		"no NUMA node":      {fields: map[string]any{"command": "true"}, change: func(a *executor.Attempt) { a.Binding.NUMANode = new(int32(77)) }},
		"no mount source":   {fields: map[string]any{"command": "true", "mounts": []any{map[string]any{"hostPath": "/switchyard/not/there", "containerPath": "/x"}}}},
		"no GPU":            {fields: map[string]any{"command": "true"}, change: func(a *executor.Attempt) { a.Binding.GPUs = []string{"0", "1"} }},
		"no workspace":      {fields: map[string]any{"command": "true"}, change: func(a *executor.Attempt) { a.Dirs.Workspace = "/switchyard/not/there" }},
		"no program":        {fields: map[string]any{"command": []any{"/not/there"}}, code: 127},
		"no entry point":    {fields: map[string]any{"entrypoint": "switchyard-none"}, code: 127},
		"no command at all": {fields: map[string]any{}, code: 126},
		"privileged":        {fields: map[string]any{"command": "true", "privileged": true}, code: 126},
		"no such address":   {fields: map[string]any{"command": "true", "ip": "10.1.2.3"}, code: 126},
		"capability":        {fields: map[string]any{"command": "true", "capAdd": []any{"NET_ADMIN"}}, code: 126},
		"little memory":     {fields: map[string]any{"command": "true"}, change: func(a *executor.Attempt) { a.Limits.Memory = 1 << 20 }, code: 126},
		"mounted twice":     {fields: map[string]any{"command": "true", "mounts": []any{map[string]any{"hostPath": "/tmp", "containerPath": "/x"}, map[string]any{"hostPath": "/tmp", "containerPath": "/x"}}}, code: 126},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _, _ := enginetest.Attempt(t, "build", test.fields)
			if test.change != nil {
				test.change(&a)
			}
			_, err := newExecutor(t, allow).Run(t.Context(), a, func() { t.Error("it has started") })
			start := executor.AsStartError(err)
			switch {
			case err == nil:
				t.Error("no error")
			case test.code == 0 && start != nil:
				t.Errorf("the task is blamed for: %v", err)
			case test.code != 0 && (start == nil || start.ExitCode != test.code):
				t.Errorf("%v (%+v), want a StartError with %d", err, start, test.code)
			}
			if l := enginetest.Left(t, a.ID); len(l) > 0 {
				t.Errorf("left behind: %v", l)
			}
		})
	}
}

// The file of a command is readable for any user of the container.
func TestCommandRunsWithTheInterpreterThatItNames(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, containers.Options{})
	const script = "#!/bin/env sh\nset -eu; id -u; echo \"$1 $0\"; grep -c '^#!' \"$0\"; false; echo not reached"
	for user, id := range map[string]string{"": "0", "worker": "1000", "4321:99": "4321"} {
		a, out, errs := enginetest.Attempt(t, "build", map[string]any{"command": script, "args": []any{"a b"}, "user": user})
		if a.Dirs.Workspace = t.TempDir(); os.Chmod(a.Dirs.Workspace, 0o700) != nil {
			t.Fatal("the mode of the workspace cannot be changed")
		}
		r, err := e.Run(t.Context(), a, func() {})
		if want := id + "\na b " + containers.WorkspaceDir + "/script\n1\n"; err != nil || r.ExitCode != 1 || out.String() != want {
			t.Errorf("user %q: result %+v, error %v, it prints %q and %q, want %q", user, r, err, out, errs, want)
		}
	}
}

func TestCommandThatIsTooLongForAnArgumentRuns(t *testing.T) {
	t.Parallel()
	a, out, errs := enginetest.Attempt(t, "build", map[string]any{"command": "echo \"$1 $0\"\n#" + strings.Repeat("x", 200_000) + "\nfalse\necho not reached", "args": []any{"a b"}, "user": "worker"})
	if a.Dirs.Workspace = t.TempDir(); os.Chmod(a.Dirs.Workspace, 0o700) != nil {
		t.Fatal("the mode of the workspace cannot be changed")
	}
	r, err := newExecutor(t, containers.Options{}).Run(t.Context(), a, func() {})
	if err != nil || r.ExitCode != 1 || out.String() != "a b sh\n" {
		t.Errorf("result %+v, error %v, it prints %q and %q", r, err, out, errs)
	}
}

// Arguments that are too long together fail an attempt for good, although Docker starts the container. The same words of a program
// do not.
func TestArgumentsThatAreTooLongTogetherAreAFaultOfTheSpec(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, containers.Options{})
	const text = "echo 'exec x: argument list too long' >&2; exit 1"
	for name, test := range map[string]struct {
		command string
		large   int
		isFault bool
	}{"too long": {"true", 60, true}, "a program that prints more": {"echo on; " + text, 2, false}, "a program with few arguments": {text, 1, false}} {
		args := slices.Repeat([]any{strings.Repeat("x", 120_000)}, test.large)
		a, _, errs := enginetest.Attempt(t, "build", map[string]any{"command": test.command, "args": args})
		r, err := e.Run(t.Context(), a, func() {})
		if err != nil || r.ExitCode != 1 || (r.Failure != nil) != test.isFault || test.isFault && (r.Failure.Reason != v1.ReasonBadSpec || !strings.Contains(r.Failure.Err.Error(), "$SWITCHYARD_INPUT")) {
			t.Errorf("%s: result %+v, error %v, it prints %.300q", name, r, err, errs.String())
		}
	}
}

func TestImageWithoutTheInterpreterIsAFaultOfTheSpec(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, containers.Options{})
	for name, test := range map[string]struct {
		fields map[string]any
		code   int
		want   string
	}{
		"no program":      {map[string]any{"command": "#!/usr/bin/python3\n1"}, 127, "the #! line names an interpreter that does not run (/usr/bin/python3: no such program in the image)"},
		"none by env":     {map[string]any{"command": "#!/bin/env python3\n1"}, 127, "(python3: no such program in the image)"},
		"env with -S":     {map[string]any{"command": "#!/bin/env -S python3 -u\n1", "user": "worker"}, 127, "(python3: no such program in the image)"},
		"spec.shell":      {map[string]any{"command": "a=(1)", "shell": "bash"}, 127, "spec.shell names an interpreter that does not run (bash: no such program in the image)"},
		"not executable":  {map[string]any{"command": "#!/etc/passwd\n1"}, 126, "(/etc/passwd may not be executed)"},
		"again, by image": {map[string]any{"command": "1", "shell": []any{"/bin/env", "python3", "-c"}}, 127, "spec.shell names an interpreter that does not run (python3: no such program in the image); use an image that has it"},
	} {
		a, _, _ := enginetest.Attempt(t, "build", test.fields)
		a.Dirs.Workspace = t.TempDir()
		_, err := e.Run(t.Context(), a, func() { t.Errorf("%s: it has started", name) })
		if start := executor.AsStartError(err); start == nil || !start.BadSpec || start.ExitCode != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v (%+v), want %d, %s", name, err, start, test.code, test.want)
		}
	}
}

// A container that another client of the engine ends has not ended by itself, however it
// handles the signal.
func TestContainerStoppedByAnotherClientIsAFaultOfTheNode(t *testing.T) {
	t.Parallel()
	engine := enginetest.Engine(t)
	e := newExecutor(t, containers.Options{})
	for signal, isFault := range map[string]bool{"SIGKILL": true, "SIGTERM": true, "SIGHUP": false} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "trap 'exit 0' TERM HUP; echo ready; while :; do sleep 0.05; done"})
			ended := enginetest.Begin(t, t.Context(), e, a)
			out.Await(t, "ready")
			if err := engine.ContainerKill(t.Context(), containers.Name(a.Identity), signal); err != nil {
				t.Fatal(err)
			}
			r := enginetest.End(t, ended)
			switch {
			case isFault && (r.Err == nil || executor.AsStartError(r.Err) != nil):
				t.Errorf("result %+v, error %v, want a fault of the node", r.Result, r.Err)
			case !isFault && (r.Err != nil || r.ExitCode != 0):
				t.Errorf("result %+v, error %v, want the program's own", r.Result, r.Err)
			}
		})
	}
}

// A task finds its files in the container as any user, and the node can read them
// afterwards.
func TestWorkspaceIsSharedWithTheContainer(t *testing.T) {
	t.Parallel()
	dir, shared, data := t.TempDir(), t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.Chmod(dir, 0o700), os.Mkdir(filepath.Join(dir, "tmp"), 0o700), os.WriteFile(filepath.Join(dir, "input.json"), []byte("{}"), 0o600),
		os.Chmod(shared, 0o777), os.WriteFile(filepath.Join(data, "f"), []byte("data"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a, out, errs := enginetest.Attempt(t, "build", map[string]any{
		"user": "1000",
		"command": `set -e; cat $SWITCHYARD_INPUT; echo k=v > $SWITCHYARD_OUTPUT; echo x > $SWITCHYARD_LOCAL_TEMP_DIR/x; echo y > $SWITCHYARD_SHARED_DIR/y
			echo more > $SWITCHYARD_INPUT; ls /local_temp; cat /data/f; ! echo z > /data/z 2>/dev/null; echo $OTHER $SWITCHYARD_LOCAL_TEMP_DIR $SWITCHYARD_SHARED_DIR; ls -d $SWITCHYARD_OUTPUT`,
		"mounts": []any{map[string]any{"hostPath": data, "containerPath": "/data", "readOnly": true}},
	})
	a.Dirs.Workspace, a.Dirs.Temp, a.Dirs.Shared = dir, filepath.Join(dir, "tmp"), shared
	a.Env = map[string]string{
		"SWITCHYARD_INPUT": dir + "/input.json", "SWITCHYARD_OUTPUT": dir + "/output", "SWITCHYARD_LOCAL_TEMP_DIR": dir + "/tmp",
		"SWITCHYARD_SHARED_DIR": shared, "OTHER": dir + "other",
	}
	completes(t, newExecutor(t, containers.Options{Policy: &v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: data, ReadOnly: true}}}}), a, errs)
	if want := "{}x\ndata" + dir + "other /local_temp /shared\n/switchyard/output\n"; out.String() != want {
		t.Errorf("it prints %q and %q, want %q", out, errs, want)
	}
	for path, want := range map[string]string{dir + "/output": "k=v\n", dir + "/tmp/x": "x\n", shared + "/y": "y\n", dir + "/input.json": "more\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, dir + "/tmp": 0o700, dir + "/input.json": 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

// The container's name and labels identify its attempt.
func TestNameAndLabelsIdentifyTheAttempt(t *testing.T) {
	t.Parallel()
	engine := enginetest.Engine(t)
	a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo ready; sleep 1000", "labels": map[string]any{"mine": "yes"}})
	a.Identity.Fleet, a.Identity.Attempt, a.Identity.Claim = "f", 2, 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := enginetest.Begin(t, ctx, newExecutor(t, containers.Options{}), a)
	out.Await(t, "ready")
	name := "switchyard-" + a.Identity.Run + "-build-0-c3"
	c, err := engine.ContainerInspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"switchyard.run": a.Identity.Run, "switchyard.task": "build", "switchyard.index": "-1", "switchyard.attempt": "2",
		"switchyard.claim": "3", "switchyard.node": a.Identity.Node, "switchyard.id": a.ID, "switchyard.fleet": "f", "mine": "yes",
	} {
		if got := c.Config.Labels[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	if containers.Name(a.Identity) != name {
		t.Errorf("Name says %s", containers.Name(a.Identity))
	}
	cancel()
	if r := enginetest.End(t, ended); r.Err != nil || !r.Stopped || r.Signal != "SIGTERM" {
		t.Errorf("%+v", r)
	}
}

// A failed container is kept if the spec says so, and is not mistaken for a survivor.
func TestFailedContainerIsKept(t *testing.T) {
	t.Parallel()
	engine, e := enginetest.Engine(t), newExecutor(t, containers.Options{})
	for _, code := range []string{"0", "3"} {
		a, _, _ := enginetest.Attempt(t, "build", map[string]any{"command": "exit " + code, "keep": "onFailure"})
		var told testneeds.Output
		a.Notify = func(line string) { fmt.Fprintln(&told, line) }
		if _, err := e.Run(t.Context(), a, func() {}); err != nil {
			t.Fatal(err)
		}
		name := containers.Name(a.Identity) + "-kept"
		_, err := engine.ContainerInspect(t.Context(), name)
		t.Cleanup(func() {
			_ = engine.ContainerRemove(context.Background(), name, container.RemoveOptions{Force: true})
		})
		if kept := err == nil; kept != (code != "0") || kept != strings.Contains(told.String(), "docker rm -v "+name) {
			t.Errorf("exit code %s: kept %v, told %q", code, kept, told.String())
		}
		if left, err := e.Survivors(t.Context(), a.Identity.Node); err != nil || len(left) > 0 {
			t.Errorf("survivors: %+v, %v", left, err)
		}
	}
}

func TestChildThatIsKilledForMemoryExplainsAFailure(t *testing.T) {
	t.Parallel()
	// The score makes the kernel choose the child, and not the program that waits for it.
	a, _, _ := enginetest.Attempt(t, "build", map[string]any{"command": "sh -c 'echo 1000 >/proc/self/oom_score_adj; x=$(yes | head -c 300000000); echo $x | wc -c'; exit 3"})
	a.Limits.Memory = 32 << 20
	r, err := newExecutor(t, containers.Options{}).Run(t.Context(), a, func() {})
	if err != nil || r.ExitCode != 3 || r.Signal != "" || !r.OOMKilled {
		t.Errorf("%+v, %v", r, err)
	}
}

// A container of the same dispatch whose creation was not acknowledged is replaced.
func TestUnacknowledgedContainerIsReplaced(t *testing.T) {
	t.Parallel()
	engine := enginetest.Engine(t)
	a, _, errs := enginetest.Attempt(t, "build", map[string]any{"command": "true"})
	_, err := engine.ContainerCreate(t.Context(), &container.Config{
		Image: enginetest.Image(t), Cmd: []string{"true"}, Labels: map[string]string{"switchyard.id": a.ID},
	}, nil, nil, nil, containers.Name(a.Identity))
	if err != nil {
		t.Fatal(err)
	}
	completes(t, newExecutor(t, containers.Options{}), a, errs)
	if l := enginetest.Left(t, a.ID); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
}

// Without an engine, an attempt fails at once and nothing starts.
func TestAttemptFailsAtOnceWithoutEngine(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, containers.Options{Host: "unix://" + filepath.Join(t.TempDir(), "none.sock")})
	if err := e.Available(); err == nil {
		t.Error("it is available")
	}
	a, _, _ := enginetest.Attempt(t, "build", map[string]any{"command": "true"})
	_, err := e.Run(t.Context(), a, func() { t.Error("it has started") })
	if err == nil || executor.AsStartError(err) != nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want one that says that there is no engine", err)
	}
}
