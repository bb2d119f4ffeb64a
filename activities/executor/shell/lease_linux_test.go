package shell

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
	"switchyard/activities/executor/shell/pipes"
	"switchyard/activities/executor/shell/procfs"
	"switchyard/activities/executor/shell/watchdogproc"
	"switchyard/dev/testneeds"
)

// A stopped worker cannot end its attempts, so the watchdog does. The worker notices when
// it continues.
func TestWatchdogEndsTheTreeOfAStoppedWorker(t *testing.T) {
	t.Parallel()
	endsTheTreeOfAStopped(t, portable)
}

func endsTheTreeOfAStopped(t *testing.T, m Mechanism, env ...string) {
	executortest.WithLease(t, func(length time.Duration) error {
		h, err := tryHelper(t, m, "yes", append(env, helperLease+"="+length.String())...)
		if err != nil {
			return err
		}
		if err := h.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		testneeds.Await(t, "the task's processes are dead", func() bool {
			return gone(h.grandchild) && len(livingMarked(h.id)) == 0
		})
		if err := h.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if !h.output.Scan() || h.output.Text() != "ended true <nil>" {
			return fmt.Errorf("the worker says %q, %v", h.output.Text(), h.output.Err())
		}
		return nil
	})
}

// livingMarked returns the living processes with the marker of an attempt.
func livingMarked(id string) []procfs.Process {
	living, _ := procfs.NewSearch(id).Find()
	return living
}

// newRecordedWatchdog returns a watchdog without a process, and a function that returns the next message sent
// to it.
func newRecordedWatchdog(t *testing.T) (*watchdog, func() string) {
	t.Helper()
	write, its, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	read, err := net.FileConn(its)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close(); its.Close() })
	w := newWatchdog(true, slog.New(slog.DiscardHandler))
	w.conn, w.exited = write, make(chan struct{})
	t.Cleanup(w.unfollow)
	lines := bufio.NewScanner(read)
	return w, func() string {
		_ = read.SetReadDeadline(time.Now().Add(2 * time.Minute))
		if !lines.Scan() {
			t.Fatalf("nothing comes: %v", lines.Err())
		}
		return lines.Text()
	}
}

// The worker sends a lease to the watchdog when the lease begins, when it is renewed, and
// when the worker has asked the attempt to stop, after which the watchdog only kills it.
func TestWorkerReportsLeasesToTheWatchdog(t *testing.T) {
	w, next := newRecordedWatchdog(t)
	begin := executor.Now()
	lease := executor.NewLease(begin, time.Hour, 2*time.Hour)
	want := func(verb string, from executor.Instant, stopping bool) {
		t.Helper()
		stop, kill := from.Add(time.Hour+15*time.Minute), from.Add(2*time.Hour)
		if stopping {
			stop = kill
		}
		if got, want := next(), fmt.Sprintf(`%s "a" %d %d 2`, verb, stop, kill); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	if err := w.add("a", executor.Ending{Signal: "SIGINT", Lease: lease}); err != nil {
		t.Fatal(err)
	}
	want("add", begin, false)
	lease.Renew(begin.Add(1))
	want("lease", begin.Add(1), false)
	lease.Renew(begin.Add(2))
	want("lease", begin.Add(2), false)
	w.noteStopping("a")
	want("lease", begin.Add(2), true)
	lease.Renew(begin.Add(3))
	want("lease", begin.Add(3), true)
	w.remove("a")
	if got := next(); got != `remove "a"` {
		t.Errorf("told %s", got)
	}
	// An attempt without a lease is never over.
	if err := w.add("b", executor.Ending{}); err != nil {
		t.Fatal(err)
	}
	w.noteStopping("b")
	w.remove("b")
	if got, want := next(), fmt.Sprintf(`add "b" %d %d 15`, executor.Never, executor.Never); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	if got := next(); got != `remove "b"` {
		t.Errorf("told %s", got)
	}
}

// markedProgram starts a program with the marker of an attempt, and returns once the
// program has printed ready.
func markedProgram(t *testing.T, id, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), procfs.Marker+"="+id)
	// Standard input lets the program wait without starting another process.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("printed %q, %v", line, err)
	}
	return cmd
}

func say(t *testing.T, w *watchdogproc.Table, format string, args ...any) {
	t.Helper()
	if _, err := w.Receive(fmt.Sprintf(format, args...)); err != nil {
		t.Fatal(err)
	}
}

// The watchdog asks an attempt to stop once, at its stop time. From its kill time on, it
// kills the attempt repeatedly, since a fork may come late.
func TestWatchdogEnforcesLeases(t *testing.T) {
	t.Parallel()
	id := fmt.Sprintf("%d-%d/enforced/c1", os.Getpid(), time.Now().UnixNano())
	cmd := markedProgram(t, id, "n=0; trap 'n=$((n+1)); echo $n >&2' TERM; echo ready; while :; do read x; done")
	w := watchdogproc.NewTable()
	soon := executor.Now().Add(time.Hour)
	say(t, w, `add %q %d %d 15`, id, soon, soon)
	if wait := w.Enforce(); wait <= 0 || wait > watchdogproc.EnforceStep || len(livingMarked(id)) == 0 {
		t.Fatalf("acts before its time: wait %v", wait)
	}
	say(t, w, `lease %q %d %d 15`, id, executor.Now(), soon)
	w.Enforce()
	a := w.Attempts[id]
	if !a.Stopped || a.Killed != 0 || len(livingMarked(id)) == 0 {
		t.Fatalf("at the time to stop: %+v, living %v", a, livingMarked(id))
	}
	say(t, w, `lease %q %d %d 15`, id, executor.Now(), executor.Now())
	w.Enforce()
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("ended with %v", err)
	}
	late := markedProgram(t, id, "echo ready; exec sleep 1000")
	testneeds.Await(t, "what was forked late is ended too", func() bool {
		w.Enforce()
		return len(livingMarked(id)) == 0
	})
	_ = late.Wait()
	say(t, w, `remove %q`, id)
	if wait := w.Enforce(); wait != -1 {
		t.Errorf("without attempts it waits %v", wait)
	}
}

func TestWatchdogAsksToStop(t *testing.T) {
	t.Parallel()
	id := fmt.Sprintf("%d-%d/asked/c1", os.Getpid(), time.Now().UnixNano())
	cmd := markedProgram(t, id, "trap '' TERM; trap 'exit 7' INT; echo ready; while :; do read x; done")
	w := watchdogproc.NewTable()
	say(t, w, `add %q %d %d 2`, id, executor.Now(), executor.Now().Add(time.Hour))
	w.Enforce()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d, want that of its own handler", code)
	}
}

// A watchdog that was held up processes pending messages before it acts on a lease.
func TestWatchdogReadsPendingMessagesBeforeItActs(t *testing.T) {
	t.Parallel()
	id := fmt.Sprintf("%d-%d/heard/c1", os.Getpid(), time.Now().UnixNano())
	markedProgram(t, id, "echo ready; exec sleep 1000")
	write, read, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	for _, line := range []string{
		fmt.Sprintf(`add %q %d %d 15`, id, 1, 2), fmt.Sprintf(`lease %q %d %d 15`, id, executor.Never-1, executor.Never-1), "bye",
	} {
		if _, err := fmt.Fprintln(write, line); err != nil {
			t.Fatal(err)
		}
	}
	if err := watchdogproc.KeepWatch(int(read.Fd())); err != nil {
		t.Fatal(err)
	}
	if len(livingMarked(id)) == 0 {
		t.Error("an attempt was ended whose lease had been renewed")
	}
}

// An attempt does not start if its lease ended while the worker was held up before the
// fork.
func TestAttemptWithLostLeaseDoesNotStart(t *testing.T) { lostLeaseDoesNotStart(t, portable) }

func lostLeaseDoesNotStart(t *testing.T, m Mechanism) {
	e := newExecutor(t, Options{Mechanism: m})
	lease := executor.NewLease(executor.Now(), time.Hour, time.Hour)
	tr, err := e.enclose(executor.Attempt{ID: idPrefix + "/late/c1", Ending: executor.Ending{Lease: lease}}, false)
	if err != nil {
		t.Fatal(err)
	}
	a := executor.Attempt{ID: idPrefix + "/late/c1", Ending: executor.Ending{Lease: executor.NewLease(0, 1, 2), Grace: time.Second},
		Spec: spec(t, map[string]any{"command": "true"})}
	p, err := e.program(a)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := pipes.NewDedicated(nil, nil, &e.buffers)
	if err != nil {
		t.Fatal(err)
	}
	result, err := newRunning("", tr, a, pair, tr.end).run(context.Background(), e, p, func() { t.Error("it has started") })
	if err != nil || !result.Stopped {
		t.Errorf("result %+v, error %v", result, err)
	}
}
