package taskrunner

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/logs"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestOnlyRunningAttemptsWithAKeeperAreKept checks what a worker that is about to be started again leaves to the next one.
func TestOnlyRunningAttemptsWithAKeeperAreKept(t *testing.T) {
	t.Parallel()
	ended := func() error { return context.Canceled }
	batch := batchOf(0, 1)
	for name, test := range map[string]struct {
		req    *historyv1.ExecuteRequest
		change func(n *Node, a *attempt)
		want   string
	}{
		"running":      {request("a"), nil, ""},
		"detached":     {request("a"), func(_ *Node, a *attempt) { a.attendance.detach(time.Hour, a.ending) }, ""},
		"with secrets": {&historyv1.ExecuteRequest{RunId: "r-1", Task: "a", Type: "shell", SecretEnv: map[string]string{"A": "env:A"}}, nil, ""},
		"batch":        {batch, nil, "it is a batch of instances"},
		"type without": {&historyv1.ExecuteRequest{RunId: "r-1", Task: "a", Type: "subagent"}, nil, "it has no keeper (type subagent)"},
		"no keeper":    {request("a"), func(n *Node, _ *attempt) { n.State.Guard = nil }, "it has no keeper (type shell)"},
		"keeper fails": {request("a"), func(n *Node, _ *attempt) { n.State.Guard = func() error { return errAway } }, "it has no keeper (type shell)"},
		"lasting type": {vpsRequest(nil), nil, "it has no keeper (type vps)"},
		"no state":     {request("a"), func(n *Node, _ *attempt) { n.State.Dir = "" }, "it has no keeper (type shell)"},
		"open folder":  {request("a"), func(n *Node, _ *attempt) { leaves(n); n.State.Dir, n.State.Problem = "", errAway }, errAway.Error()},
		"agent, open folder": {
			&historyv1.ExecuteRequest{RunId: "r-1", Task: "a", Type: "subagent"},
			func(n *Node, _ *attempt) { n.State.Dir, n.State.Problem = "", errAway }, "it has no keeper (type subagent)",
		},
		"cancelled":            {request("a"), func(_ *Node, a *attempt) { a.ending = ended }, "it is ending"},
		"in preparation":       {request("a"), func(_ *Node, a *attempt) { a.progress.Store(&historyv1.ExecuteProgress{}) }, "its program has not started"},
		"without its record":   {request("a"), func(_ *Node, a *attempt) { a.recoveryFile.path = "" }, "it has no recovery file"},
		"left, not taken over": {request("a"), func(n *Node, _ *attempt) { leaves(n) }, ""},
		"left, has just ended": {request("a"), func(n *Node, a *attempt) { leaves(n); a.recoveryFile.path = "" }, "it is ending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.Executors = map[string]executor.Executor{"shell": fake.NewSurvivor("shell", nil), "subagent": fake.New("subagent", nil), v1.TypeVPS: fake.NewLasting(v1.TypeVPS, fake.NewMachines())}
			b.State.Dir, b.State.Guard = t.TempDir(), func() error { return nil }
			a := b.newAttempt(delivery{}, test.req)
			a.ending = func() error { return nil }
			a.progress.Store(&historyv1.ExecuteProgress{Spawned: true})
			a.recoveryFile.path = filepath.Join(t.TempDir(), "file")
			if test.change != nil {
				test.change(b.Node, a)
			}
			if got := a.whyNotKept(); got != test.want {
				t.Errorf("not kept because %q, want %q", got, test.want)
			}
		})
	}
}

// leaves makes the shell tasks of a node outlive only a worker that leaves them.
func leaves(n *Node) { n.Executors["shell"].(*fake.Survivor).Leaves = true }

// restarted is a worker whose shell tasks have a keeper and whose agents have none.
type restarted struct {
	*bench
	survivor *fake.Survivor
	agents   *fake.Executor
}

func newRestarted(t *testing.T, script map[string][]fake.Step) *restarted {
	t.Helper()
	r := &restarted{bench: newBench(t, nil), survivor: fake.NewSurvivor("shell", script), agents: fake.New("subagent", script)}
	r.State.Dir = filepath.Join(t.TempDir(), "state")
	r.prepare()
	return r
}

func (r *restarted) prepare() {
	r.fake, r.heartbeat = r.survivor.Executor, time.Minute
	r.Executors = map[string]executor.Executor{"shell": r.survivor, "subagent": r.agents}
	r.State.Guard, r.State.Keeps = func() error { return nil }, true
	r.Secrets = testSecrets{"env:TOKEN": secretValue}
}

// next returns the next worker of the same node after its recovery.
func (r *restarted) next() *heir {
	r.t.Helper()
	b := newBench(r.t, nil)
	b.Store, b.State.Dir = r.Store, r.State.Dir
	n := &restarted{bench: b, survivor: r.survivor, agents: r.agents}
	n.prepare()
	h := &heir{bench: b, survivor: r.survivor, held: &places{make(chan string, 10), make(chan string, 10)}}
	b.Room = h.held
	h.recovers()
	return h
}

// lets stops the worker, which must leave a number of attempts.
func (r *restarted) lets(attempts int) Left {
	r.t.Helper()
	r.KeepAttempts()
	r.BeginDrain(time.Now(), "the worker stops")
	r.LetGo("the worker stops")
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	left := r.AwaitLeft(ctx)
	if left.Attempts != attempts || ctx.Err() != nil {
		r.t.Fatalf("left is %+v", left)
	}
	return left
}

// isPending waits until Execute has returned without an answer.
func (e *execution) isPending() {
	e.b.t.Helper()
	select {
	case <-e.done:
	case <-time.After(patience):
		e.b.t.Fatal("Execute does not return")
	}
	if e.err != errLetGo {
		e.b.t.Fatalf("the activity ends with %v, %v", e.res, e.err)
	}
}

// TestRestartKeepsAnAttemptForTheNextWorker checks that the next worker continues an attempt with its place, times, secrets
// and log, and answers its activity.
func TestRestartKeepsAnAttemptForTheNextWorker(t *testing.T) {
	t.Parallel()
	first := "one " + secretValue + "\ntw"
	t.Run("that prints all again", func(t *testing.T) { restartKeeps(t, false, first, first+"o\n") })
	t.Run("that prints the rest", func(t *testing.T) { restartKeeps(t, true, first, "o\n") })
}

func restartKeeps(t *testing.T, leaves bool, first, second string) {
	t.Parallel()
	r := newRestarted(t, map[string][]fake.Step{"a": {{Stdout: first, Block: true}, {Stdout: second, Block: true}}})
	r.survivor.Leaves = leaves
	req := request("a")
	req.SecretEnv = map[string]string{"TOKEN": "env:TOKEN"}
	e := r.start(t.Context(), req)
	r.runs("a")
	before := time.Now()
	if files, _ := filepath.Glob(filepath.Join(r.State.Dir, "*"+recoverySuffix)); len(files) == 0 != leaves {
		t.Errorf("before it is left there are %v", files)
	}
	left := r.lets(1)
	e.isPending()
	if kill := left.First.Sub(before); !left.First.Equal(left.Last) || kill < 40*time.Second || kill > 2*time.Minute {
		t.Errorf("the lease ends %s and %s", left.First, left.Last)
	}
	beats := r.server.heard()
	last := beats[len(beats)-1]
	if until := last.GetLeftUntil().AsTime(); !last.GetLeft() || until.Sub(left.First).Abs() > 2*time.Second || beats[len(beats)-2].GetLeft() {
		t.Errorf("the last heartbeat says %v, left until %s", last, left.First)
	}
	started := last.GetStartedAt()
	if entries, _, ended, err := logs.Read(t.Context(), r.Store, attemptLog, 0); err != nil || ended || len(entries) == 0 {
		t.Errorf("its log: %d entries, ended %t, %v", len(entries), ended, err)
	}
	if removed := r.survivor.Removed(); len(removed) != 0 {
		t.Errorf("%v removed", removed)
	}

	h := r.next()
	testneeds.Await(t, "it runs again in its place", func() bool { return len(h.fake.Calls()) == 2 && len(h.held.restored) == 1 })
	h.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	res := h.server.answered("token")
	want(t, res, "completed", "")
	if res.GetResult().GetStdout() != "one ***\ntwo\n" || !res.GetStartedAt().AsTime().Equal(started.AsTime()) {
		t.Errorf("answer %v, started %v", res, started)
	}
	h.settled()
	if text := h.printed(); text != "one ***\ntwo\n" {
		t.Errorf("the log is %q", text)
	}
}

// messageLog collects the messages of a logger.
type messageLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *messageLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *messageLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestRestartDrainsWhatHasNoKeeper checks that a drain waits for attempts without a keeper alone, says so, and that it waits for
// an attempt with a keeper as long as its program has not started.
func TestRestartDrainsWhatHasNoKeeper(t *testing.T) {
	t.Parallel()
	r := newRestarted(t, map[string][]fake.Step{"a": {{Block: true}}, "b": {{Block: true}}})
	messages := &messageLog{}
	r.Logger = slog.New(slog.NewTextHandler(messages, nil))
	kept := r.start(t.Context(), request("a"))
	r.runs("a")
	agent := request("b")
	agent.Type = "subagent"
	drains := r.start(t.Context(), agent)
	if err := r.agents.AwaitRunning(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	r.KeepAttempts()
	if text := messages.String(); !strings.Contains(text, "it drains\" run=r-1 task=b") || !strings.Contains(text, "it has no keeper (type subagent)") || strings.Contains(text, "task=a") {
		t.Errorf("the log says %s", text)
	}
	r.BeginDrain(time.Now().Add(time.Hour), "the worker stops")
	want(t, r.start(t.Context(), request("c")).answer(), "moved", "draining")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if r.AwaitIdle(short) == nil {
		t.Error("the drain does not wait for the agent")
	}
	r.agents.Release("b")
	want(t, drains.answer(), "completed", "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.AwaitIdle(ctx); err != nil {
		t.Errorf("the drain waits for what is kept: %v", err)
	}
	r.BeginDrain(time.Now(), "the worker stops")
	if n := r.live(); n != 1 {
		t.Fatalf("%d attempts are live", n)
	}
	r.lets(1)
	kept.isPending()
	r.survivor.DropLeftover(reattachedID)
}

// TestDrainWaitsForWhatCannotBeLeft checks that an attempt with a keeper may end in a drain if its recovery file cannot be written.
func TestDrainWaitsForWhatCannotBeLeft(t *testing.T) {
	t.Parallel()
	r := newRestarted(t, map[string][]fake.Step{"a": {{Block: true}}})
	r.survivor.Leaves = true
	messages := &messageLog{}
	r.Logger = slog.New(slog.NewTextHandler(messages, nil))
	e := r.start(t.Context(), request("a"))
	r.runs("a")
	if err := os.MkdirAll(recoveryPath(r.State.Dir, reattachedID), 0o700); err != nil {
		t.Fatal(err)
	}
	r.KeepAttempts()
	if text := messages.String(); !strings.Contains(text, "it drains") || !strings.Contains(text, "note what a later worker needs") {
		t.Errorf("the log says %s", text)
	}
	r.BeginDrain(time.Now().Add(time.Hour), "the worker stops")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if r.AwaitIdle(short) == nil {
		t.Error("the drain does not wait for the task")
	}
	r.fake.Release("a")
	want(t, e.answer(), "completed", "")
}

// TestActivityThatReattachesALeftAttemptGetsTheAnswerOfTheNextWorker checks that an activity that comes too late for this
// worker is answered by the next one.
func TestActivityThatReattachesALeftAttemptGetsTheAnswerOfTheNextWorker(t *testing.T) {
	t.Parallel()
	r := newRestarted(t, map[string][]fake.Step{"a": {{Block: true}, {Block: true}}})
	e := r.startAs(t.Context(), "one", request("a"))
	r.runs("a")
	r.bench.leave(e, "a", "one")
	testneeds.Await(t, "the server has its answer", func() bool {
		_, released := r.attempts.all()[0].attendance.sender()
		return released
	})
	r.lets(1)
	r.startAs(t.Context(), "two", reattachment(request("a"))).isPending()
	if _, err := r.Steer(t.Context(), &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: "pause"}); err == nil {
		t.Error("a request meanwhile has an answer")
	}
	h := r.next()
	testneeds.Await(t, "it runs again", func() bool { return len(h.fake.Calls()) == 2 })
	h.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("two") != nil })
	want(t, h.server.answered("two"), "completed", "")
	h.settled()
}

// TestReattachedAttemptIsKeptAgain checks that a second restart keeps an attempt, too, even if its executor has not yet found it.
func TestReattachedAttemptIsKeptAgain(t *testing.T) {
	t.Parallel()
	r := newRestarted(t, map[string][]fake.Step{"a": {{Block: true}, {Block: true}}})
	e := r.start(t.Context(), request("a"))
	r.runs("a")
	r.lets(1)
	e.isPending()
	r.survivor.FailSurvivors(errAway)
	second := r.next()
	testneeds.Await(t, "it beats", func() bool { return second.live() == 1 && len(second.server.heard()) > 0 })
	again := &restarted{bench: second.bench, survivor: r.survivor}
	again.lets(1)
	second.end(t.Context())
	if answer := second.server.answered("token"); answer != nil {
		t.Errorf("the second worker answers %v", answer)
	}
	third := r.next()
	testneeds.Await(t, "it beats", func() bool { return third.live() == 1 && len(third.server.heard()) > 0 })
	time.AfterFunc(10*time.Millisecond, func() { r.survivor.FailSurvivors(nil) })
	if res, err := third.Steer(t.Context(), &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: "pause"}); err != nil || res.GetRefused() != "" {
		t.Errorf("a pause before the worker has found it: %v, %v", res, err)
	}
	testneeds.Await(t, "it runs again", func() bool { return len(third.fake.Calls()) == 2 })
	if res, err := third.Steer(t.Context(), &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: "resume"}); err != nil || res.GetRefused() != "" {
		t.Errorf("the resume: %v, %v", res, err)
	}
	third.fake.Release("a")
	testneeds.Await(t, "the activity is answered", func() bool { return third.server.answered("token") != nil })
	want(t, third.server.answered("token"), "completed", "")
	third.settled()
}

// TestBatchIsHandedBackByARestart checks that a batch, which no worker can continue, moves with what it has finished.
func TestBatchIsHandedBackByARestart(t *testing.T) {
	t.Parallel()
	r := newRestarted(t, map[string][]fake.Step{"a": {{Block: true}}})
	e := r.start(t.Context(), batchOf(0, 1))
	r.runs("a")
	r.lets(0)
	want(t, e.answer(), v1.AttemptMoved, v1.ReasonDraining)
	if files, _ := os.ReadDir(r.State.Dir); len(files) > 1 {
		t.Errorf("%v are left", files)
	}
}
