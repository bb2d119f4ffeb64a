package taskrunner

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
)

// The idle time-out counts from the start or from the end of the last session, and not while a session is open.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var idle idleTimeout
		var stopped atomic.Bool
		began := time.Now()
		time.Sleep(time.Second)
		idle.begin(8*time.Second, began, func(cause error) { stopped.Store(cause != nil) }, nil)
		isStopped := func(after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if stopped.Load() != want {
				t.Fatalf("%v after the start it is stopped: %v", time.Since(began), !want)
			}
		}
		isStopped(6*time.Second, false)
		first, second := idle.enter(), idle.enter()
		isStopped(time.Hour, false)
		first()
		first()
		isStopped(time.Hour, false)
		second()
		isStopped(7*time.Second, false)
		isStopped(2*time.Second, true)
	})
}

func TestIdleTimeoutStopsTheAttempt(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	res := l.start(t.Context(), vpsRequest(map[string]any{"idleTimeout": "50ms"})).answer()
	want(t, res, "stopped", "idle")
	if res.GetError() != "no session was open for 50ms" {
		t.Errorf("the reason is %q", res.GetError())
	}
}

func TestEntryIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	l.fake = fake.New("shell", map[string][]fake.Step{"b": {{Block: true}}})
	l.Executors["shell"] = l.fake
	e := l.lasts(nil)
	shell := l.startAs(t.Context(), "b", request("b"))
	l.runs("b")
	for _, test := range []struct {
		header  *v1.SessionHeader
		text    string
		missing bool
	}{
		{&v1.SessionHeader{RunId: "r-1", Task: "a", Claim: 2}, "another dispatch of task a runs on node n now; try again", true},
		{&v1.SessionHeader{RunId: "r-1", Task: "c", Claim: 1}, "task c has ended on node n, or never ran there", true},
		{&v1.SessionHeader{RunId: "r-1", Chain: "other", Task: "a", Claim: 1}, "task a has ended on node n, or never ran there", true},
		{&v1.SessionHeader{RunId: "r-1", Task: "b", Claim: 1}, "tasks of type shell cannot be entered", false},
	} {
		_, _, err := l.Enter(t.Context(), test.header)
		refusal, ok := errors.AsType[*EntryError](err)
		if !ok || refusal.Text != test.text || refusal.Missing != test.missing {
			t.Errorf("%v: %v", test.header, err)
		}
	}
	inside, leave, err := l.Enter(t.Context(), &v1.SessionHeader{RunId: "r-1", Task: "a", Claim: 1})
	if err != nil || inside.(fake.Inside).ID != reattachedID {
		t.Errorf("the inside is %v, %v", inside, err)
	}
	open := 0
	for _, a := range l.attempts.all() {
		a.sessions.idle.mu.Lock()
		open += a.sessions.idle.open
		a.sessions.idle.mu.Unlock()
	}
	if open != 1 {
		t.Errorf("the idle time-outs count %d sessions", open)
	}
	leave()
	l.fake.Release("b")
	shell.answer()
	l.steer("stop")
	e.answer()
	if _, _, err := l.Enter(t.Context(), &v1.SessionHeader{RunId: "r-1", Task: "a", Claim: 1}); err == nil {
		t.Error("it is entered after its end")
	}
}

func TestSessionsForFilesAreBounded(t *testing.T) {
	t.Parallel()
	l := newLastingNode(t)
	e := l.lasts(nil)
	enter := func(kind string) (func(), error) {
		_, leave, err := l.Enter(t.Context(), &v1.SessionHeader{Kind: kind, RunId: "r-1", Task: "a", Claim: 1})
		return leave, err
	}
	var leaves []func()
	for i := range maxTransfers {
		leave, err := enter([]string{"sftp", "read_tar", "write_tar"}[i%3])
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	_, err := enter("sftp")
	if refusal, ok := errors.AsType[*EntryError](err); !ok || refusal.Missing || !strings.Contains(refusal.Text, "64 sessions open that copy or serve files") {
		t.Errorf("one more: %v", err)
	}
	if leave, err := enter("exec"); err != nil {
		t.Errorf("a program: %v", err)
	} else {
		leave()
	}
	leaves[0]()
	leaves[0]()
	if leaves[0], err = enter("sftp"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	if _, err = enter("sftp"); err == nil {
		t.Error("an end counts twice")
	}
	for _, leave := range leaves {
		leave()
	}
	l.steer("stop")
	want(t, e.answer(), "stopped", "")
}
