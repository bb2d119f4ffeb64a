package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/procfs"
	"switchyard/dev/testneeds"
	"switchyard/workflows/interpreter"
)

// run executes a command in an attempt and returns its output.
func run(t *testing.T, e *Executor, a executor.Attempt, command any) (executor.Result, string, error) {
	t.Helper()
	var out strings.Builder
	if a.ID == "" {
		a.ID = fmt.Sprintf("%s/%d/c1", t.Name(), time.Now().UnixNano())
	}
	a.Spec, a.Stdout, a.Grace = spec(t, map[string]any{"command": command}), &out, time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := e.Run(ctx, a, func() {})
	return r, out.String(), err
}

func TestEnvironmentCombinesPassedVariablesAndTheTasks(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Options{
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/home/me", "LC_TIME=C", "GOPATH=/go", "NODE=n", "GROUP_A=a", "GROUP_B=b", "BOTH=node", "PWD=/elsewhere", "GROUP_TOKEN=hidden", "GOFLAGS=hidden",
			"SWITCHYARD_TOKEN=secret", "SWITCHYARD_ITEM=outer", "TEMPORAL_API_KEY=secret", "AWS_SECRET_ACCESS_KEY=secret", "SSH_AUTH_SOCK=/run/agent", "NODES=not NODE",
		},
		PassEnv:  []string{"NODE", "GROUP_*", "BOTH", "SWITCHYARD_*"},
		IsHidden: func(name string) bool { return name == "GROUP_TOKEN" || name == "GOFLAGS" },
	})
	dir := t.TempDir()
	a := executor.Attempt{ID: idPrefix + "/task/c7", Dirs: executor.Dirs{Base: dir}, Env: map[string]string{
		"BOTH": "task", "TASK": "t", "SWITCHYARD_TASK": "task", procfs.Marker: "forged",
	}}
	_, out, err := run(t, e, a, []any{"env"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"PATH=" + os.Getenv("PATH"): true, "HOME=/home/me": true, "LC_TIME=C": true, "GOPATH=/go": true, "NODE=n": true,
		"GROUP_A=a": true, "GROUP_B=b": true, "BOTH=task": true, "TASK=t": true, "PWD=" + dir: true,
		"SWITCHYARD_TASK=task": true, procfs.Marker + "=" + idPrefix + "/task/c7": true,
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if !want[line] {
			t.Errorf("unexpected %q", line)
		}
		delete(want, line)
	}
	if len(want) > 0 {
		t.Errorf("missing %v", want)
	}
}

func TestProgramThatHasEndedIsNotStopped(t *testing.T) {
	program := exec.Command("true")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	for !procfs.HasExited(program.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	r := &running{attempt: executor.Attempt{Ending: executor.Ending{Grace: time.Minute}}, hasExited: func() bool { return procfs.HasExited(program.Process.Pid) }, done: make(chan struct{})}
	r.stop() // terminates nothing, since there is no tree
	if !r.stopAt.IsZero() {
		t.Error("a program is stopped that has ended by itself and was not waited for yet")
	}
	if err := program.Wait(); err != nil {
		t.Fatal(err)
	}
	if !procfs.HasExited(program.Process.Pid) {
		t.Error("a program that was waited for counts as running")
	}
	if procfs.HasExited(os.Getpid()) {
		t.Error("this process counts as ended")
	}
}

func TestPassNamesAreValidated(t *testing.T) {
	for name, good := range map[string]bool{
		"SSH_AUTH_SOCK": true, "AWS_*": true, "*": true, "_x1": true,
		"": false, "A=b": false, "A-B": false, "1A": false, "*A": false, "A B": false, "SWITCHYARD_TOKEN": false, "SWITCHYARD_*": false,
	} {
		if err := CheckPassName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCommandOfSeveralLinesEndsAtTheFirstThatFails(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Options{})
	for command, want := range map[string]struct {
		code int
		out  string
	}{
		"false; echo on":                                        {0, "on\n"},
		"\nfalse; echo on\n":                                    {0, "on\n"},
		"cd /nonexistent 2>&-\necho deployed":                   {2, ""},
		"echo a\n(exit 7)\necho b\n":                            {7, "a\n"},
		"false || echo handled\nif false; then\n:\nfi\necho on": {0, "handled\non\n"},
		"set +e\nfalse\necho on":                                {0, "on\n"},
	} {
		r, out, err := run(t, e, executor.Attempt{}, command)
		if err != nil || (r.ExitCode != 0) != (want.code != 0) || want.code == 7 && r.ExitCode != 7 || out != want.out {
			t.Errorf("%q: exit code %d, printed %q, error %v", command, r.ExitCode, out, err)
		}
	}
}

func TestMalformedEnvironmentIsAStartError(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Options{})
	large := map[string]string{} // more than the 6 MiB that Linux allows under any stack limit
	for i := range 60 {
		large["V"+strconv.Itoa(i)] = strings.Repeat("x", 120_000)
	}
	for _, env := range []map[string]string{{"": "x"}, {"A=B": "x"}, {"A\x00": "x"}, {"A": "x\x00"}, {"A": strings.Repeat("x", 8<<20)}, large} {
		_, _, err := run(t, e, executor.Attempt{Env: env}, "true")
		if start := executor.AsStartError(err); start == nil || !start.BadSpec {
			t.Errorf("error %v, want a StartError of the spec", err)
		}
	}
}

// TestLimitOfAnArgumentIsThatOfLinux checks interpreter.MaxArgument against the kernel.
func TestLimitOfAnArgumentIsThatOfLinux(t *testing.T) {
	t.Parallel()
	if os.Getpagesize() != 4096 {
		t.Skip("the limit is 32 pages")
	}
	e := newExecutor(t, Options{})
	for more, fits := range map[int]bool{0: true, 1: false} {
		text := strings.Repeat("x", interpreter.MaxArgument+more)
		_, out, err := run(t, e, executor.Attempt{Env: map[string]string{"A": text[2:]}}, []any{"sh", "-c", "echo ${#1} ${#A}", "sh", text})
		if (err == nil) != fits || fits && out != fmt.Sprintf("%d %d\n", len(text), len(text)-2) {
			t.Errorf("with %d bytes: printed %q, error %v", len(text), out, err)
		}
		if _, _, err := run(t, e, executor.Attempt{Env: map[string]string{"A": text[2:]}}, []any{"true"}); (err == nil) != fits {
			t.Errorf("with a variable of %d bytes: %v", len(text), err)
		}
	}
}

// A list runs without a shell, and its program is found as the task would find it.
func TestListRunsWithoutAShell(t *testing.T) {
	e := newExecutor(t, Options{})
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "mine"), []byte("#!/bin/sh\necho mine \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "notmine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		path string
		argv []any
		want string
		code int
	}{
		{"words are not split or expanded", "", []any{"printf", "<%s>", "a  b", "$HOME", "*", ""}, "<a  b><$HOME><*><>", 0},
		{"PATH of the task", filepath.Join(dir, "bin"), []any{"mine", "1"}, "mine 1\n", 0},
		{"relative PATH of the task", "bin:/usr/bin:/bin", []any{"mine"}, "mine\n", 0},
		{"relative to the directory", "", []any{"./bin/mine"}, "mine\n", 0},
		{"not executable", filepath.Join(dir, "bin"), []any{"notmine"}, "", 126},
		{"not executable, by path", "", []any{"./bin/notmine"}, "", 126},
		{"not there", "/nowhere", []any{"true"}, "", 127},
		{"not there, by path", "", []any{"./bin/none"}, "", 127},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := executor.Attempt{Dirs: executor.Dirs{Base: dir}, Env: map[string]string{}}
			if test.path != "" {
				a.Env["PATH"] = test.path
			}
			_, out, err := run(t, e, a, test.argv)
			if out != test.want {
				t.Errorf("printed %q, want %q", out, test.want)
			}
			start := executor.AsStartError(err)
			if (test.code == 0 && err != nil) || (test.code != 0 && (start == nil || start.ExitCode != test.code)) {
				t.Errorf("error %v, want exit code %d", err, test.code)
			}
		})
	}
}

func TestTasksHaveASessionOfTheirOwn(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Options{})
	_, out, err := run(t, e, executor.Attempt{}, `read pid name state parent group session rest </proc/self/stat; echo $pid $group $session; cat`)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(out)
	if len(fields) != 3 || fields[0] != fields[1] || fields[0] != fields[2] {
		t.Errorf("pid, group and session are %v, want the same", fields)
	}
}

func TestResultReportsTimeAndMemory(t *testing.T) {
	t.Parallel()
	resultReportsTimeAndMemory(t, portable)
}

func resultReportsTimeAndMemory(t *testing.T, m Mechanism) {
	e := newExecutor(t, Options{Mechanism: m})
	// The child of the shell uses the processor, not the shell itself.
	r, _, err := run(t, e, executor.Attempt{}, `sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true`)
	if err != nil {
		t.Fatal(err)
	}
	if r.CPUTime < 20*time.Millisecond || r.CPUTime > 20*time.Second {
		t.Errorf("CPU time %v, want that of 200,000 rounds, a tenth of a second or more", r.CPUTime)
	}
	// The task holds its memory long enough to be sampled, since this process may be larger. A busy machine may
	// sample late.
	sampled := func(least int64, command string, times ...string) executor.Result {
		t.Helper()
		for _, seconds := range times {
			if r, _, err = run(t, e, executor.Attempt{}, fmt.Sprintf(command, seconds)); err != nil {
				t.Fatal(err)
			}
			if r.PeakMemory >= least {
				break
			}
		}
		return r
	}
	r = sampled(90<<20, `(head -c 100000000 /dev/zero; sleep %s) | tail -n 1 | wc -c`, "0.3", "3", "60")
	if r.PeakMemory < 90<<20 || r.PeakMemory > 1<<30 {
		t.Errorf("peak memory %d MiB, want 95 or somewhat more", r.PeakMemory>>20)
	}
	r = sampled(100<<10, `sleep %s`, "0.2", "20")
	if r.PeakMemory < 100<<10 || r.PeakMemory > 8<<20 {
		t.Errorf("peak memory of a small task %d KiB, want its own and not the worker's", r.PeakMemory>>10)
	}
}

// TestPeakExcludesTheMemoryOfAGrowingWorker checks that the memory of a worker that grows while it starts programs is never
// attributed to them.
func TestPeakExcludesTheMemoryOfAGrowingWorker(t *testing.T) {
	e := newExecutor(t, Options{})
	stop := make(chan struct{})
	var grow sync.WaitGroup
	grow.Go(func() {
		var kept [][]byte
		for len(kept) < 256 {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				block := make([]byte, 1<<20)
				for i := 0; i < len(block); i += 4096 {
					block[i] = 1
				}
				kept = append(kept, block)
			}
		}
		runtime.KeepAlive(kept)
	})
	defer grow.Wait()
	defer close(stop)
	for range 20 {
		r, _, err := run(t, e, executor.Attempt{}, `true`)
		if err != nil {
			t.Fatal(err)
		}
		if r.PeakMemory > 8<<20 {
			t.Errorf("peak memory of a small task %d KiB, the worker's is %d", r.PeakMemory>>10, ownPeak()>>10)
		}
	}
}

func TestPeakMemoryPrefersWait4AboveTheBaseline(t *testing.T) {
	for _, test := range []struct{ waited, baseline, sampled, want int64 }{
		{100, 50, 80, 100}, {50, 50, 10, 10}, {50, 50, 0, 0},
	} {
		if got := peakMemory(test.waited, test.baseline, test.sampled); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}

// Short-lived orphans that end while the program still runs can be reaped only by the subreaper.
func TestNoZombiesAreLeft(t *testing.T) { noZombiesAreLeft(t, portable) }

func noZombiesAreLeft(t *testing.T, m Mechanism) {
	e, err := New(Options{Mechanism: m})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, _, err := run(t, e, executor.Attempt{}, `(true &); (setsid true &); (env -i setsid sh -c 'true & true' &); sleep 0.05`); err != nil {
			t.Fatal(err)
		}
	}
	// Without cgroups, an orphan that has cleared its environment may live a moment longer than its attempt.
	testneeds.Await(t, "all orphans have ended", func() bool { return !hasLivingChild(t) })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := leftovers(); err != nil {
		t.Error(err)
	}
}

// pidsOf returns the PIDs of the processes with a command line.
func pidsOf(t *testing.T, line string) (pids []int) {
	t.Helper()
	all, err := procfs.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		words, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline"))
		if strings.TrimSuffix(strings.ReplaceAll(string(words), "\x00", " "), " ") == line {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// hasLivingChild reports whether this process has a child that is no zombie.
func hasLivingChild(t *testing.T) bool {
	t.Helper()
	all, err := procfs.List()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(p procfs.Process) bool { return p.Parent == os.Getpid() && !p.Zombie })
}

// The subreaper leaves the exit statuses that other code waits for, even that of a child that leads a session.
func TestOtherChildrenKeepTheirExitStatus(t *testing.T) {
	e := newExecutor(t, Options{Mechanism: EnvMarker})
	var others sync.WaitGroup
	for i := range 20 {
		others.Go(func() {
			cmd := exec.Command("sh", "-c", fmt.Sprintf("sleep 0.0%d; exit 9", i%10))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: i%2 == 0}
			err := cmd.Run()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 9 {
				t.Errorf("another child ended with %v, want exit status 9", err)
			}
		})
	}
	for range 20 {
		if _, _, err := run(t, e, executor.Attempt{}, "(setsid true &); true"); err != nil {
			t.Error(err)
		}
	}
	others.Wait()
}

// Closing an Executor does not reap programs of another Executor of this process that have not been waited for
// yet.
func TestClosingAnExecutorReapsNoProgramOfAnother(t *testing.T) {
	newExecutor(t, Options{Mechanism: EnvMarker})
	closing, err := New(Options{Mechanism: EnvMarker})
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command("sh", "-c", "exit 9")
	program.SysProcAttr = sessionAttr(false)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "the program has ended", func() bool { return procfs.HasExited(program.Process.Pid) })
	if err := closing.Close(); err != nil {
		t.Error(err)
	}
	err = program.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 9 {
		t.Errorf("the program ended with %v, want exit status 9", err)
	}
}

// The end of an attempt does not affect the processes of another.
func TestAttemptsDoNotEndEachOther(t *testing.T) {
	t.Parallel()
	attemptsDoNotEndEachOther(t, portable)
}

func attemptsDoNotEndEachOther(t *testing.T, m Mechanism) {
	e := newExecutor(t, Options{Mechanism: m})
	ctx, cancel := context.WithCancel(t.Context())
	var long sync.WaitGroup
	started := make(chan struct{})
	long.Go(func() {
		a := executor.Attempt{
			ID: idPrefix + t.Name() + "/long/c1", Ending: executor.Ending{Grace: time.Second},
			Spec: spec(t, map[string]any{"command": "(setsid sleep 100000 &); sleep 100000"}),
		}
		r, err := e.Run(ctx, a, func() { close(started) })
		if err != nil || !r.Stopped {
			t.Errorf("result %+v, error %v, want it to last until it is stopped", r, err)
		}
	})
	<-started
	for i := range 2 {
		a := executor.Attempt{ID: idPrefix + t.Name() + "/long/c1" + strconv.Itoa(i)} // the other attempt's id is a prefix
		if _, _, err := run(t, e, a, "(setsid sleep 100000 &); true"); err != nil {
			t.Error(err)
		}
	}
	// Its second process may start late.
	testneeds.Await(t, "the long attempt has all its processes", func() bool { return len(leftOf(t, idPrefix+t.Name()+"/long/c1")) >= 2 })
	cancel()
	long.Wait()
}

func TestProcessWithoutMarkerIsFoundBySessionOrDescent(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Options{Mechanism: EnvMarker})
	left := fmt.Sprintf("sleep %d", 1_000_000+os.Getpid()) // differs from that of another run of this test
	for name, command := range map[string]string{
		"in the session":          `env -i ` + left + ` & sleep 0.05`,
		"orphan in the session":   `(env -i ` + left + ` &); sleep 0.05`,
		"in a session of its own": `setsid sh -c 'env -i ` + left + ` & sleep 4242' & sleep 0.05`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := run(t, e, executor.Attempt{}, command); err != nil {
				t.Fatal(err)
			}
			if pids := pidsOf(t, left); len(pids) > 0 {
				t.Errorf("left: %v", pids)
			}
		})
	}
}

func TestClosedExecutorRefusesAttempts(t *testing.T) {
	e, err := New(Options{Mechanism: portable})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run(t, e, executor.Attempt{}, "true"); err == nil {
		t.Error("a closed executor runs tasks")
	}
}

func TestUnknownMechanismIsRefused(t *testing.T) {
	if _, err := New(Options{Mechanism: "magic"}); err == nil {
		t.Error("no error")
	}
}
