//go:build engines

package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/dev/testneeds"
)

// needSandbox returns an Executor that can create sandboxes. It uses cgroups, unless the options name another mechanism.
func needSandbox(t *testing.T, o Options) *Executor {
	t.Helper()
	o.Mechanism = cmp.Or(o.Mechanism, Cgroup)
	e := newExecutor(t, o)
	if err := e.CanSandbox(); err != nil {
		testneeds.Missing(t, "no sandboxes here: %v", err)
	}
	return e
}

func boxed(s *structpb.Struct) *structpb.Struct {
	if s != nil && s.Fields["command"] != nil {
		s.Fields["sandbox"] = structpb.NewBoolValue(true)
	}
	return s
}

func TestLongSandboxConformance(t *testing.T) {
	testneeds.Long(t)
	for _, m := range []Mechanism{Cgroup, EnvMarker} {
		t.Run(string(m), func(t *testing.T) {
			executortest.Run(t, executortest.Harness{
				New:  func(t *testing.T) executor.Executor { return newExecutor(t, Options{Mechanism: m, Watchdog: true}) },
				Spec: func(p executortest.Program) *structpb.Struct { return boxed(programSpec(p)) },
				BadSpecs: map[string]*structpb.Struct{
					"sandbox is a word":   spec(t, map[string]any{"command": "true", "sandbox": "yes"}),
					"network is unknown":  spec(t, map[string]any{"command": "true", "sandbox": true, "network": "host"}),
					"no command":          spec(t, map[string]any{"sandbox": true}),
					"program is a file":   spec(t, map[string]any{"command": []any{"/etc/passwd"}, "sandbox": true}),
					"program is a folder": spec(t, map[string]any{"command": []any{"/etc"}, "sandbox": true}),
					"directory is a file": spec(t, map[string]any{"command": "true", "workingDirectory": "/dev/null", "sandbox": true}),
					"word is too long":    spec(t, map[string]any{"command": []any{"true", string(make8MiB())}, "sandbox": true}),
				},
				Left:       leftOf,
				FloodBytes: 16 << 20,
				Many:       20,
				Repeats:    20,
				Stdin:      true,
				Memory:     true,
			})
		})
	}
}

// sandbox is an Executor with directories for attempts in sandboxes.
type sandbox struct {
	*Executor
	workspace, base string
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	s := &sandbox{Executor: needSandbox(t, Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "NODES_SECRET=x"}, PassEnv: []string{"NODES_SECRET"}})}
	// The workspaces are in a private directory, as a worker has them.
	root := filepath.Join(t.TempDir(), "private", "attempts")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	s.workspace, s.base = workspaceIn(t, root, "own"), t.TempDir()
	workspaceIn(t, root, "other")
	return s
}

func (s *sandbox) attempt(t *testing.T, script string) (executor.Attempt, *strings.Builder) {
	out := &strings.Builder{}
	return executor.Attempt{
		ID:     fmt.Sprintf("%s/%d/c1", t.Name(), time.Now().UnixNano()),
		Spec:   spec(t, map[string]any{"command": script, "sandbox": true}),
		Limits: executor.Limits{Memory: 512 << 20, Processes: 200},
		Dirs:   executor.Dirs{Workspace: s.workspace, Temp: filepath.Join(s.workspace, "tmp"), Base: s.base}, Streams: executor.Streams{Stdout: out, Stderr: out}, Ending: executor.Ending{Grace: time.Second},
		Env: map[string]string{"WORKSPACE": s.workspace, "BASE": s.base},
	}, out
}

// output runs a script, fails the test unless it succeeds, and returns its output.
func (s *sandbox) output(t *testing.T, script string) string {
	t.Helper()
	a, out := s.attempt(t, script)
	r, err := s.Run(t.Context(), a, func() {})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v, %q, error %v", r, out, err)
	}
	return out.String()
}

func TestSandboxRunsAsAnUnprivilegedUser(t *testing.T) {
	s := newSandbox(t)
	id := strings.Fields(s.output(t, "id -u; id -g; id -G"))
	first := strconv.Itoa(sandboxUsers.First)
	if len(id) != 3 || id[0] < first || id[1] != id[0] || id[2] != id[0] {
		t.Errorf("user, group and groups are %v", id)
	}
	for _, line := range strings.Split(strings.TrimSpace(s.output(t, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status")), "\n") {
		name, value, _ := strings.Cut(line, ":")
		want := "0000000000000000"
		if name == "NoNewPrivs" {
			want = "1"
		}
		if strings.TrimSpace(value) != want {
			t.Errorf("%s", line)
		}
	}
	// A setuid program that belongs to root.
	program, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		testneeds.Missing(t, "%v", err)
	}
	path := filepath.Join(s.base, "id")
	if err := errors.Join(os.WriteFile(path, program, 0o755), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	if got := s.output(t, "./id -u"); strings.TrimSpace(got) == "0" {
		t.Error("a setuid program makes it root")
	}
}

func TestSandboxWritesOnlyToWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	a, out := s.attempt(t, `
for f in /x /etc/x /var/tmp/x /dev/x /sys/x /run/x "$BASE/x" "$WORKSPACE/../x"; do
	if (echo x >"$f") 2>/dev/null; then echo "can write $f"; fi
done
for f in "$WORKSPACE/output" "$WORKSPACE/tmp/x" "$WORKSPACE/input.json" /tmp/y /dev/shm/x /dev/null /dev/stdout "$SHARED/x" "$HOME/z"; do
	(echo "can write $f" >"$f") || echo "cannot write $f"
done
cat "$WORKSPACE/tmp/y"`)
	a.Dirs.Shared, a.Env["SHARED"] = shared, shared
	r, err := s.Run(t.Context(), a, func() {})
	want := "can write /dev/stdout\ncan write /tmp/y\n"
	if err != nil || r.ExitCode != 0 || out.String() != want {
		t.Errorf("%+v, error %v, got\n%swant\n%s", r, err, out, want)
	}
	for _, path := range []string{filepath.Join(s.workspace, "output"), filepath.Join(shared, "x"), filepath.Join(s.workspace, "tmp", "z")} {
		if _, err := os.ReadFile(path); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "output", "input.json", "tmp"} {
		info, err := os.Lstat(filepath.Join(s.workspace, name))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			t.Errorf("%q of the workspace was not taken back: %v", name, err)
		}
	}
}

func TestSandboxSeesNothingOfOthers(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	secret := filepath.Join(s.base, "secret")
	if err := os.WriteFile(secret, []byte("root's"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	mine := filepath.Join("/tmp", fmt.Sprintf("switchyard-test-%d", os.Getpid()))
	if err := os.WriteFile(mine, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(mine)
	a, out := s.attempt(t, `
cat secret && echo reads a file of root
cat /proc/$WORKER/environ && echo reads the environment of the worker
ls /proc/$WORKER && echo sees the worker
kill -0 $OTHER && echo signals a process
ls "$WORKSPACE/../other" && echo sees another workspace
cat "$WORKSPACE/../other/input.json" && echo reads another workspace
ls $MINE && echo sees the /tmp of the node
ls / >/dev/null; env | grep -q NODES_SECRET && echo knows the environment of the node
true`)
	a.Stderr = nil
	a.Env["WORKER"], a.Env["OTHER"], a.Env["MINE"] = strconv.Itoa(os.Getpid()), strconv.Itoa(other.Process.Pid), mine
	if r, err := s.Run(t.Context(), a, func() {}); err != nil || r.ExitCode != 0 || out.Len() > 0 {
		t.Errorf("%+v, error %v, it\n%s", r, err, out)
	}
}

// Two concurrent sandboxes run as different users, each with a /tmp of its own.
func TestSandboxesAreIsolatedFromEachOther(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, _ := s.attempt(t, `echo first >/tmp/mine; echo first >/dev/shm/mine; echo $$; sleep 1000`)
	a.Dirs.Workspace = workspaceIn(t, t.TempDir(), "first")
	a.Dirs.Temp = filepath.Join(a.Dirs.Workspace, "tmp")
	pid := make(chan string, 1)
	a.Stdout = lineTo(pid)
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx, a, func() {})
		done <- err
	}()
	b, out := s.attempt(t, `ls /tmp/mine /dev/shm/mine 2>/dev/null; kill -9 $FIRST 2>/dev/null; ls -d /proc/$FIRST 2>/dev/null; kill -9 -1; true`)
	b.Env["FIRST"] = <-pid
	if r, err := s.Run(t.Context(), b, func() {}); err != nil || out.Len() > 0 {
		t.Errorf("%+v, error %v, it sees\n%s", r, err, out)
	}
	select {
	case err := <-done:
		t.Errorf("the first has ended: %v", err)
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type lineTo chan string

func (c lineTo) Write(p []byte) (int, error) {
	c <- strings.TrimSpace(string(p))
	return len(p), nil
}

func TestSandboxEnforcesItsLimits(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	t.Run("memory", func(t *testing.T) {
		a, _ := s.attempt(t, hog)
		a.Limits.Memory = 32 << 20
		if r, err := s.Run(t.Context(), a, func() {}); err != nil || !r.OOMKilled || r.ExitCode != 137 {
			t.Errorf("%+v, error %v", r, err)
		}
	})
	t.Run("processes", func(t *testing.T) {
		// Each process starts two more; the remaining ones are killed at the end.
		a, out := s.attempt(t, `bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 0.3; ls -d /proc/[0-9]* | wc -l`)
		a.Limits.Processes, a.Stderr = 60, nil
		r, err := s.Run(t.Context(), a, func() {})
		if n, e := strconv.Atoi(strings.TrimSpace(out.String())); err != nil || e == nil && n > 60 {
			t.Errorf("%+v, error %v; %d processes", r, err, n)
		}
	})
	t.Run("cores", func(t *testing.T) {
		if s.bounds.inTree {
			t.Skip("the path is that of cgroup v1")
		}
		a, _ := s.attempt(t, `i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done`)
		a.Limits.Cores = 0.1
		r, err := s.Run(t.Context(), a, func() {})
		stat, _ := os.ReadFile(filepath.Join(s.bounds.idle[1][0].paths["cpu"], "cpu.stat"))
		if err != nil || r.ExitCode != 0 || cgroup.Count(stat, "nr_throttled") < 1 {
			t.Errorf("%+v, error %v, %s", r, err, stat)
		}
	})
}

// A temporary directory outside the workspace becomes /tmp, and the directories beside it are hidden.
func TestTemporaryDirectoryElsewhereBecomesTmp(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	root := filepath.Join(t.TempDir(), "private", "attempts")
	temp := workspaceIn(t, root, "own")
	workspaceIn(t, root, "other")
	a, out := s.attempt(t, `echo x >/tmp/x && cat "$TEMP/x" && ls "$TEMP/.." && cat "$WORKSPACE/input.json" && echo y >"$WORKSPACE/output"`)
	a.Dirs.Temp, a.Env["TEMP"] = temp, temp
	if r, err := s.Run(t.Context(), a, func() {}); err != nil || r.ExitCode != 0 || out.String() != "x\nown\n{}" {
		t.Errorf("%+v, %q, error %v", r, out, err)
	}
	for _, path := range []string{temp, filepath.Join(temp, "x")} {
		if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			t.Errorf("%s was not taken back: %v", path, err)
		}
	}
}

// An attempt without a workspace has a private /tmp, too.
func TestSandboxWithoutWorkspaceHasATmp(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	a, out := s.attempt(t, `echo x >/tmp/x && cat /tmp/x && pwd`)
	a.Dirs.Workspace, a.Dirs.Temp = "", ""
	if r, err := s.Run(t.Context(), a, func() {}); err != nil || out.String() != "x\n"+s.base+"\n" {
		t.Errorf("%+v, %q, error %v", r, out, err)
	}
}

func TestBatchSharesOneSandboxUser(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	row, err := s.Batch(idPrefix+"/row/c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, script := range []string{"id -u", "id -u; kill -9 $$", "id -u; echo x >$WORKSPACE/output", hog, "id -u >/dev/stdout"} {
		a, out := s.attempt(t, script)
		a.Limits.Memory = 32 << 20
		r, err := row.Run(t.Context(), a, func() {})
		if err != nil || r.OOMKilled != (script == hog) {
			t.Errorf("%s: %+v, %q, error %v", script, r, out, err)
		}
		if script != hog {
			ids[out.String()] = true
		}
	}
	if len(ids) != 1 {
		t.Errorf("users %v, want the same one all the time", ids)
	}
	if err := row.Close(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(s.workspace)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		t.Errorf("the workspace was not taken back: %v", err)
	}
}

// A sandbox that cannot be built is a fault of the node, and the error says why.
func TestUnbuildableSandboxIsAFaultOfTheNode(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	a, _ := s.attempt(t, "true")
	if err := os.RemoveAll(filepath.Join(s.workspace, "tmp")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), a, func() { t.Error("it has started") }); err == nil ||
		executor.AsStartError(err) != nil || !strings.Contains(err.Error(), "private /tmp") {
		t.Errorf("error %v", err)
	}
	e := newExecutor(t, Options{})
	e.bounds.inTree, e.bounds.unable = false, errors.New("no cgroups today")
	if err := e.CanSandbox(); err == nil || !strings.Contains(err.Error(), "no cgroups today") {
		t.Errorf("error %v", err)
	}
	if _, err := e.Run(t.Context(), a, func() { t.Error("it has started") }); err == nil || executor.AsStartError(err) != nil {
		t.Errorf("error %v", err)
	}
}

func TestUsersAreNotSharedByWorkers(t *testing.T) {
	needSandbox(t, Options{})
	all := Users{First: 1_990_000_000 + os.Getpid()*2, Count: 2}
	a, b := newUsers(all), newUsers(all)
	one, err := a.acquire()
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.acquire()
	if err != nil || one.id == two.id {
		t.Fatalf("%v and %v, error %v", one, two, err)
	}
	if three, err := b.acquire(); err == nil {
		t.Errorf("a third one of two: %v", three)
	}
	a.release(one)
	if again, err := a.acquire(); err != nil || again.id != one.id {
		t.Errorf("%v, error %v; want %d again", again, err, one.id)
	}
	a.release(one)
	b.release(two)
	if err := a.close(); err != nil {
		t.Error(err)
	}
	// The worker has ended, but its task still runs.
	left := exec.Command("sleep", "1000")
	left.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(one.id), Gid: uint32(one.id)}}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if next, err := newUsers(all).acquire(); err == nil {
		t.Errorf("%d is free", next.id)
	}
	_ = left.Process.Kill()
	_ = left.Wait()
	if err := b.close(); err != nil {
		t.Error(err)
	}
}

// An attempt in a sandbox cannot read the variables of other attempts, whether they run in a sandbox or not.
func TestSandboxSeesNoVariablesOfOthers(t *testing.T) {
	s := newSandbox(t)
	root := filepath.Dir(s.workspace)
	var others sync.WaitGroup
	defer others.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, inSandbox := range map[string]bool{"boxed": true, "plain": false} {
		a, _ := s.attempt(t, "exec sleep 1000")
		a.ID += name
		a.Spec.Fields["sandbox"] = structpb.NewBoolValue(inSandbox)
		a.Dirs.Workspace = workspaceIn(t, root, name)
		a.Dirs.Temp = filepath.Join(a.Dirs.Workspace, "tmp")
		a.Env = map[string]string{"TOKEN": "hunter2-of-another"}
		spawned := make(chan struct{})
		others.Go(func() {
			if _, err := s.Run(ctx, a, func() { close(spawned) }); err != nil {
				t.Error(err)
			}
		})
		<-spawned
	}
	testneeds.Await(t, "two processes have the variable", func() bool {
		files, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, path := range files {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), "hunter2-of-another") {
				found++
			}
		}
		return found >= 2
	})
	a, out := s.attempt(t, `cat /proc/[0-9]*/environ | tr '\0' '\n' | grep -c . ; cat /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ | grep -q hunter2-of && echo found || echo none`)
	a.Env["OWN"] = "x"
	if _, err := s.Run(t.Context(), a, func() {}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Fields(out.String()); len(lines) != 2 || lines[0] == "0" || lines[1] != "none" {
		t.Errorf("it found %q", out.String())
	}
}

func TestSandboxesAreBuiltAFewAtOnce(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	builds := s.sandboxing.builds
	for range cap(builds) {
		builds <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan executor.Result, 1)
	start := func(ctx context.Context) {
		a, _ := s.attempt(t, "true")
		go func() {
			r, err := s.Run(ctx, a, func() {})
			if err != nil {
				t.Error(err)
			}
			ended <- r
		}()
	}
	start(ctx)
	cancel()
	if r := <-ended; !r.Stopped {
		t.Errorf("an attempt that waited when it was cancelled ended with %+v", r)
	}
	start(t.Context())
	<-builds
	if r := <-ended; r.Stopped || r.ExitCode != 0 {
		t.Errorf("an attempt that waited for a sandbox ended with %+v", r)
	}
	if n := len(builds); n != cap(builds)-1 {
		t.Errorf("%d sandboxes are being built", n-cap(builds)+1)
	}
}
