package shell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/procfs"
	"switchyard/activities/executor/shell/watchdogproc"
	"switchyard/dev/testneeds"
)

const (
	helperMechanism = "SHELL_TEST_MECHANISM"
	helperWatchdog  = "SHELL_TEST_WATCHDOG"
	helperLease     = "SHELL_TEST_LEASE" // the length of the lease of its task, which the helper renews continuously
	helperSandbox   = "SHELL_TEST_SANDBOX"
	helperSession   = "SHELL_TEST_SESSION"
	helperClaim     = "helper/task/c1"
)

// stubborn is a task with a grandchild that only SIGKILL ends, in a session of its own. The grandchild
// prints its PID, then "ready".
const stubborn = `
trap '' TERM
sleep 100000 &
(setsid sh -c 'trap "" TERM HUP INT; echo $$; echo ready; exec sleep 100000' &)
wait`

// runHelperIfAsked runs this process as a worker that a test can kill: it runs a stubborn task and
// prints the task's output.
func runHelperIfAsked() {
	m, asked := os.LookupEnv(helperMechanism)
	if !asked {
		return
	}
	e, err := New(Options{Mechanism: Mechanism(m), Watchdog: os.Getenv(helperWatchdog) != ""})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	a := executor.Attempt{ID: os.Getenv("HELPER_PREFIX") + helperClaim, Streams: executor.Streams{Stdout: os.Stdout, Stderr: os.Stderr}, Ending: executor.Ending{Grace: time.Second}}
	a.Spec, _ = specOf(map[string]any{"command": stubborn, "sandbox": os.Getenv(helperSandbox) != ""})
	if os.Getenv(helperSandbox) != "" {
		a.Limits = executor.Limits{Memory: 64 << 20}
	}
	if length, err := time.ParseDuration(os.Getenv(helperLease)); err == nil {
		a.Lease = executor.NewLease(executor.Now(), length, length*3/2)
		go func() {
			for range time.Tick(20 * time.Millisecond) {
				a.Lease.Renew(executor.Now())
			}
		}()
	}
	r, err := e.Run(context.Background(), a, func() {
		if os.Getenv(helperSession) != "" {
			go runSession(e, a.ID)
		}
	})
	fmt.Println("ended", r.Stopped, err)
	os.Exit(1)
}

// runSession runs a program with a terminal in an attempt, and another program that the first one
// detaches.
func runSession(e *Executor, id string) {
	for {
		in, err := e.Enter(context.Background(), id)
		if err != nil { // the attempt has not started yet
			time.Sleep(time.Millisecond)
			continue
		}
		status, err := in.Exec(context.Background(), executor.Command{
			Args:     []string{"sh", "-c", "trap '' HUP; setsid sleep 100001 & sleep 100002"},
			Terminal: &executor.Terminal{},
		})
		fmt.Println("session ended", status, err)
		os.Exit(1)
	}
}

// helper is a worker process whose task has printed ready.
type helper struct {
	*exec.Cmd
	id         string
	grandchild int
	output     *bufio.Scanner
}

// startHelper starts a helper and waits until its task runs.
func startHelper(t *testing.T, m Mechanism, watchdog string, env ...string) *helper {
	t.Helper()
	h, err := tryHelper(t, m, watchdog, env...)
	if err != nil {
		t.Fatal(err)
	}
	h.awaitAll(t)
	return h
}

// tryHelper starts a helper. It returns an error if the task of the helper ends before it has printed ready.
func tryHelper(t *testing.T, m Mechanism, watchdog string, env ...string) (*helper, error) {
	t.Helper()
	prefix := fmt.Sprintf("%d-%d-", os.Getpid(), time.Now().UnixNano())
	h := &helper{Cmd: exec.Command("/proc/self/exe"), id: prefix + helperClaim}
	h.Env = append(os.Environ(), helperMechanism+"="+string(m), helperWatchdog+"="+watchdog, "HELPER_PREFIX="+prefix)
	h.Env = append(h.Env, env...)
	h.Stderr = os.Stderr
	out, err := h.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.Process.Kill()
		_ = h.Wait()
		// Kill whatever a failed test has left behind.
		for _, line := range leftOf(t, h.id) {
			pid, _ := strconv.Atoi(strings.TrimPrefix(strings.Fields(line)[0], "/proc/"))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	h.output = bufio.NewScanner(out)
	for h.output.Scan() {
		if h.output.Text() == "ready" {
			return h, nil
		}
		if h.grandchild, err = strconv.Atoi(h.output.Text()); err != nil {
			return nil, fmt.Errorf("the helper prints %q", h.output.Text())
		}
	}
	return nil, fmt.Errorf("the helper has ended: %v", h.output.Err())
}

// awaitAll waits until all processes of the task are seen. One that is executing another program is not.
func (h *helper) awaitAll(t *testing.T) {
	t.Helper()
	testneeds.Await(t, "the task has three processes", func() bool { return len(leftOf(t, h.id)) >= 3 })
}

// kill kills the worker with SIGKILL.
func (h *helper) kill(t *testing.T) {
	t.Helper()
	h.awaitAll(t)
	if err := h.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.Wait()
}

// gone reports whether a process has ended. It ignores zombies, since the machine's init decides
// when to reap them.
func gone(pid int) bool { return len(livingOf([]int{pid})) == 0 }

func TestWatchdogEndsTheTreeOfAKilledWorker(t *testing.T) {
	t.Parallel()
	endsTheTree(t, portable)
}

func TestSessionsEndWithAKilledWorker(t *testing.T) {
	t.Parallel()
	endsSessions(t, portable)
}

func endsSessions(t *testing.T, m Mechanism, env ...string) {
	h := startHelper(t, m, "yes", append(env, helperSession+"=yes")...)
	testneeds.Await(t, "the session runs", func() bool {
		all := strings.Join(leftOf(t, h.id), "\n")
		return strings.Contains(all, `"sleep\x00100001\x00"`) && strings.Contains(all, `"sleep\x00100002\x00"`)
	})
	dogs := watchdogsOf(t, h.Process.Pid)
	h.kill(t)
	testneeds.Await(t, "nothing of it is left", func() bool { return len(leftOf(t, h.id)) == 0 })
	testneeds.Await(t, "the watchdog is gone", func() bool { return len(livingOf(dogs)) == 0 })
}

func endsTheTree(t *testing.T, m Mechanism, env ...string) {
	h := startHelper(t, m, "yes", env...)
	dogs := watchdogsOf(t, h.Process.Pid)
	if len(dogs) != 1 {
		t.Fatalf("watchdogs %v, want one", dogs)
	}
	// Signals that a terminal or an administrator sends to all processes do not end the watchdog, once it runs.
	testneeds.Await(t, "the watchdog ignores signals", func() bool { return ignoresTermination(dogs[0]) })
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(dogs[0], s); err != nil {
			t.Fatal(err)
		}
	}
	h.kill(t)
	testneeds.Await(t, "the task's tree is gone", func() bool { return len(leftOf(t, h.id)) == 0 && gone(h.grandchild) })
	testneeds.Await(t, "the watchdog is gone", func() bool { return len(livingOf(dogs)) == 0 })
	testneeds.Await(t, "no cgroup is left", func() bool { return len(cgroupsOf(t, h.Process.Pid)) == 0 })
}

// ignoresTermination reports whether a process ignores SIGTERM.
func ignoresTermination(pid int) bool {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			ignored, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && ignored>>(syscall.SIGTERM-1)&1 == 1
		}
	}
	return false
}

func TestWatchdogEndsWithItsExecutor(t *testing.T) {
	e, err := New(Options{Mechanism: portable, Watchdog: true})
	if err != nil {
		t.Fatal(err)
	}
	if dogs := watchdogsOf(t, os.Getpid()); len(dogs) != 0 {
		t.Errorf("watchdogs %v before the first attempt", dogs)
	}
	for range 3 {
		runTrue(t, e)
	}
	dogs := watchdogsOf(t, os.Getpid())
	if len(dogs) != 1 {
		t.Errorf("watchdogs %v, want one", dogs)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if left := livingOf(dogs); len(left) > 0 {
		t.Errorf("watchdogs %v are left", left)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestKilledWatchdogIsReplaced(t *testing.T) {
	e := newExecutor(t, Options{Mechanism: portable, Watchdog: true})
	runTrue(t, e)
	first := watchdogsOf(t, os.Getpid())
	if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "another watchdog runs", func() bool {
		runTrue(t, e)
		now := watchdogsOf(t, os.Getpid())
		return len(now) == 1 && now[0] != first[0]
	})
}

// A program whose main does not call ServeIfAsked works, but without a watchdog.
func TestWorkerRunsWithoutAWatchdogThatKeepsEnding(t *testing.T) {
	var log bytes.Buffer
	e := newExecutor(t, Options{Mechanism: portable, Watchdog: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	e.guard.path = "/bin/true"
	testneeds.Await(t, "it is given up", func() bool {
		runTrue(t, e)
		return strings.Contains(log.String(), "keeps ending")
	})
	runTrue(t, e)
	if n := strings.Count(log.String(), "starting another one"); n >= mostWatchdogs {
		t.Errorf("%d were started", n)
	}
}

func TestWatchdogParsesMessages(t *testing.T) {
	w := watchdogproc.NewTable()
	for _, line := range []string{`cgroup "/a b"`, `add "run/x/c1" 1 2 15`, `add "odd\n\"id" 3 4 2`, `lease "odd\n\"id" 5 6 2`, `remove "run/x/c1"`} {
		if bye, err := w.Receive(line); bye || err != nil {
			t.Errorf("%s: bye %v, error %v", line, bye, err)
		}
	}
	if a := w.Attempts["odd\n\"id"]; w.Cgroup != "/a b" || len(w.Attempts) != 1 || a == nil || a.StopAt != 5 || a.KillAt != 6 || a.Signal != syscall.SIGINT {
		t.Errorf("heard %+v", w)
	}
	for _, line := range []string{"", "add", "add x", `add "x"`, `add "x" 1`, `add "x" 1 2`, `add "x" soon later`, `what "x"`} {
		if _, err := w.Receive(line); err == nil {
			t.Errorf("%q is no error", line)
		}
	}
	if bye, err := w.Receive("bye"); !bye || err != nil {
		t.Errorf("bye %v, error %v", bye, err)
	}
}

// TestWatchdogForgetsWhatItsWorkerHasEnded checks that an attempt which its worker has ended, without having heard that the watchdog
// keeps it, does not keep the watchdog.
func TestWatchdogForgetsWhatItsWorkerHasEnded(t *testing.T) {
	t.Parallel()
	own, its, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	defer its.Close()
	socket := filepath.Join(t.TempDir(), "x.left")
	keep, err := json.Marshal(watchdogproc.KeepMessage{Name: "x", Socket: socket, Text: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	end := executor.Now().Add(time.Hour)
	if _, err := fmt.Fprintf(own, "add \"x\" %d %d 15\nkeep %s\n", end, end, keep); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- watchdogproc.KeepWatch(int(its.Fd())) }()
	var answer [1]byte
	if _, err := io.ReadFull(own, answer[:]); err != nil || answer[0] != watchdogproc.Keeps {
		t.Fatalf("answer %q, %v", answer, err)
	}
	if _, err := fmt.Fprint(own, "remove \"x\"\nbye\n"); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "the watchdog ends", func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	if _, statErr := os.Stat(socket); err != nil || !os.IsNotExist(statErr) {
		t.Errorf("ended with %v; its socket: %v", err, statErr)
	}
}

func runTrue(t *testing.T, e *Executor) {
	t.Helper()
	r, err := e.Run(t.Context(), executor.Attempt{ID: idPrefix + "/true/c1", Spec: spec(t, map[string]any{"command": "true"})}, func() {})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("result %+v, error %v", r, err)
	}
}

// watchdogsOf returns the PIDs of a worker's watchdogs.
func watchdogsOf(t *testing.T, worker int) []int {
	t.Helper()
	all, err := procfs.List()
	if err != nil {
		t.Fatal(err)
	}
	var dogs []int
	for _, p := range all {
		var line []byte
		testneeds.Await(t, "the process has its arguments", func() bool { // set late during exec
			line, _ = os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline"))
			now, err := procfs.Read(strconv.Itoa(p.PID))
			return len(line) > 0 || p.Parent != worker || err != nil || now.Zombie
		})
		if p.Parent == worker && bytes.HasPrefix(line, []byte(watchdogproc.Name)) {
			dogs = append(dogs, p.PID)
		}
	}
	return dogs
}

func livingOf(pids []int) []int {
	var living []int
	for _, pid := range pids {
		if p, err := procfs.Read(strconv.Itoa(pid)); err == nil && !p.Zombie {
			living = append(living, pid)
		}
	}
	return living
}

func cgroupsOf(t *testing.T, worker int) []string {
	t.Helper()
	base, err := cgroup.Own()
	if err != nil {
		return nil
	}
	dirs, _ := filepath.Glob(filepath.Join(base, fmt.Sprintf("%s%d-*", cgroup.ParentPrefix, worker)))
	return dirs
}
