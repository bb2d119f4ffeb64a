package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/follow"
	"switchyard/cli/output"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

func TestRunOnAGateway(t *testing.T) {
	file := write(t, "nightly.yaml", hello)
	for _, format := range []string{"text", "json", "jsonl"} {
		f := fake(t)
		nightly(f)
		got := run(t, "run", file, "--gateway", f.url, "-o", format, "--input", "n=3", "--input", "who=me", "--placement-timeout", "90s")
		if got.code != exit.CodeNotDone {
			t.Errorf("-o %s: exit code %d, want %d", format, got.code, exit.CodeNotDone)
		}
		golden.Check(t, "testdata/run-"+format+"-stdout"+".golden", got.stdout)
		golden.Check(t, "testdata/run-stderr.golden", got.stderr)
		if format == output.Text && got.stdout != "" {
			t.Errorf("standard output has %q", got.stdout)
		}
		req := requests[*v1.SubmitRunRequest](f)[0]
		if req.GetDocument() != hello || req.GetFile() != file {
			t.Errorf("submitted %q of file %q", req.GetDocument(), req.GetFile())
		}
		if in := req.GetInput().AsMap(); in["n"] != 3.0 || in["who"] != "me" {
			t.Errorf("input %v", in)
		}
		if d := req.GetOptions().GetPlacementTimeout().AsDuration(); d.Seconds() != 90 {
			t.Errorf("placement time-out %s", d)
		}
	}
}

func TestJSONLinesAreDocuments(t *testing.T) {
	f := fake(t)
	nightly(f)
	got := run(t, "runs", "watch", "last", "--gateway", f.url, "-o", "jsonl")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	for i, line := range lines {
		var d struct{ Type, State string }
		must(t, json.Unmarshal([]byte(line), &d))
		want := "task"
		if i == len(lines)-1 {
			want = "run"
		}
		if d.Type != want || d.State == "" {
			t.Errorf("line %d is %q", i, line)
		}
	}
}

func TestRunWithLogs(t *testing.T) {
	f := fake(t)
	completed(f)
	got := run(t, "run", write(t, "f.yaml", hello), "--gateway", f.url, "--logs")
	if got.code != exit.CodeDone {
		t.Errorf("exit code %d", got.code)
	}
	for _, line := range []string{"fetch | <fetched>\n", "build | main.go:3: unused\n", "build | main.go:9: shadowed\n"} {
		if !strings.Contains(got.stderr, line) {
			t.Errorf("no line %q in\n%s", line, got.stderr)
		}
	}
	if !strings.HasSuffix(got.stderr, "(2 completed, 1 dead_letter, 1 skipped)\n") {
		t.Errorf("the summary is not last:\n%s", got.stderr)
	}
}

// TestRunWithLogsDoesNotWaitForeverForThem checks that logs that do not end with their run hold the command up for a while, or
// until an interrupt, and that it says so.
func TestRunWithLogsDoesNotWaitForeverForThem(t *testing.T) {
	for what, timeout := range map[string]time.Duration{"a while": 100 * time.Millisecond, "an interrupt": time.Hour} {
		f := fake(t)
		completed(f)
		f.lateLogs = true
		c := startWith(t, func(sys *system) { sys.logsTimeout = timeout }, nil, "", "run", write(t, "f.yaml", hello), "--gateway", f.url, "--logs")
		c.stderr.await(t, "notify  completed")
		if timeout == time.Hour {
			c.interrupt(exit.ErrInterrupted)
		}
		c.wait(t)
		if !strings.Contains(c.stderr.String(), "logs are no longer shown: ") {
			t.Errorf("after %s, stderr:\n%s", what, c.stderr)
		}
	}
}

// TestInterruptsOfARunOnAGateway checks what the first and a second signal do to a run that a command follows.
func TestInterruptsOfARunOnAGateway(t *testing.T) {
	t.Parallel()
	own := []string{"run", write(t, "f.yaml", hello), "-o", "json"}
	failure := connect.NewError(connect.CodeInternal, errStopping)
	for name, test := range map[string]struct {
		args    []string
		signal  error
		gateway func(f *fakeGateway)
		second  string // what the command says before the second signal
		cancels int
		says    string
	}{
		"own run":                  {own, exit.ErrInterrupted, nil, "", 1, "interrupt again to stop waiting for its end"},
		"own run, closed terminal": {own, exit.ErrHungUp, nil, "", 0, "run nightly-4g5h6jkm continues"},
		"watched run":              {[]string{"runs", "watch", "last"}, exit.ErrInterrupted, nil, "", 0, "run nightly-4g5h6jkm continues"},
		"run that is ending": {
			[]string{"runs", "watch", "last"}, exit.ErrInterrupted, nil, "", 0,
			"run nightly-4g5h6jkm is ending: cancelled by ann; `switchyard runs cancel --force nightly-4g5h6jkm` ends it at once",
		},
		"failed cancel": {own, exit.ErrInterrupted, func(f *fakeGateway) { f.fail = failure }, "", 0, ""},
		"slow cancel": {
			own, exit.ErrInterrupted, func(f *fakeGateway) { f.onlyForced = true },
			"has not ended yet; `switchyard runs cancel --force nightly-4g5h6jkm` ends it at once", 1, "run nightly-4g5h6jkm is being cancelled",
		},
		"cancel without an answer": {
			own, exit.ErrInterrupted, func(f *fakeGateway) { f.deaf = true }, "interrupt again", 0,
			"run nightly-4g5h6jkm may continue, because its cancellation was not confirmed: the gateway at ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fake(t)
			nightly(f)
			f.untilCancel = true
			if name == "run that is ending" {
				for _, m := range f.messages[:len(f.messages)-1] {
					m.Run.Error = phrase.Ending("cancelled by ann")
				}
			}
			c := startWith(t, func(sys *system) { sys.forceAfter, sys.answerTimeout = time.Millisecond, time.Millisecond }, nil, "", append(test.args, "--gateway", f.url)...)
			c.stderr.await(t, "running")
			if test.gateway != nil {
				f.mu.Lock()
				test.gateway(f)
				f.mu.Unlock()
			}
			c.interrupt(test.signal)
			if test.second != "" {
				c.stderr.await(t, test.second)
				if !c.sys.secondSignal.fire() {
					t.Error("a second signal does nothing")
				}
			}
			c.ends(t, exit.CodeInterrupted, test.says)
			if len(f.cancelled) != test.cancels || test.cancels > 0 && (f.cancelled[0].GetId() != fakeRun || f.cancelled[0].GetForce() || f.cancelled[0].GetRequestId() != "") {
				t.Errorf("cancelled %v", f.cancelled)
			}
			if name == "own run" && !json.Valid([]byte(c.stdout.String())) {
				t.Errorf("standard output is no document:\n%s", c.stdout)
			}
		})
	}
}

// TestInterruptWhileARunIsStartedCancelsIt checks that an interrupted command waits for the answer to the request that starts its run, and
// that a command that does not get it says so.
func TestInterruptWhileARunIsStartedCancelsIt(t *testing.T) {
	t.Parallel()
	file := write(t, "f.yaml", hello)
	for name, test := range map[string]struct {
		args   []string
		second bool
	}{
		"run": {[]string{"run", file}, false}, "run detached": {[]string{"run", "--detach", file}, false},
		"submit": {[]string{"submit", file}, false}, "rerun": {[]string{"runs", "rerun", fakeRun}, false},
		"two interrupts": {[]string{"run", file}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fake(t)
			nightly(f)
			f.untilCancel, f.starting = true, make(chan struct{})
			c := start(t, nil, "", append(test.args, "--gateway", f.url)...)
			<-f.starting
			c.interrupt(exit.ErrInterrupted)
			c.stderr.await(t, "for the gateway to say whether the run was started")
			if test.second {
				if !c.sys.secondSignal.fire() {
					t.Error("a second signal ends the process at once")
				}
				c.ends(t, exit.CodeInterrupted, "the run may have been started, because the gateway at ")
				return
			}
			f.starting <- struct{}{}
			c.ends(t, exit.CodeInterrupted, "cancelling the run")
			if len(f.cancelled) != 1 || !strings.HasPrefix(f.cancelled[0].GetId(), "nightly-") {
				t.Errorf("cancelled %v", f.cancelled)
			}
		})
	}
}

// TestFastSecondSignalDoesNotLoseTheCancellation checks that a second signal lets the gateway answer the request to cancel the run, even if
// both signals come before the request is sent, and that the command then says what happens to the run.
func TestFastSecondSignalDoesNotLoseTheCancellation(t *testing.T) {
	t.Parallel()
	for says, gateway := range map[string]func(f *fakeGateway){
		"run nightly-4g5h6jkm is being cancelled; `switchyard runs cancel --force nightly-4g5h6jkm` ends it at once, without finally\n": func(*fakeGateway) {},
		"finally of run nightly-4g5h6jkm runs on; `switchyard runs cancel nightly-4g5h6jkm --now` ends it\n":                            func(f *fakeGateway) { f.inFinally = true },
		"run nightly-4g5h6jkm had already ended; `switchyard runs get nightly-4g5h6jkm` shows how\n": func(f *fakeGateway) {
			f.fail = connect.NewError(connect.CodeAborted, errStopping)
		},
	} {
		f := fake(t)
		nightly(f)
		f.untilCancel, f.onlyForced, f.held = true, true, make(chan struct{})
		c := start(t, nil, "", "run", write(t, "f.yaml", hello+"finally:\n  tidy: { type: shell, spec: { command: echo tidy } }\n"), "--gateway", f.url)
		c.stderr.await(t, "running")
		f.mu.Lock()
		gateway(f)
		f.mu.Unlock()
		c.interrupt(exit.ErrInterrupted)
		if !c.sys.secondSignal.fire() {
			t.Error("a second signal ends the process at once")
		}
		c.stderr.await(t, "for the gateway to confirm the cancellation; interrupt again to quit at once")
		if c.sys.secondSignal.fire() {
			t.Error("a third signal does not end the process")
		}
		close(f.held)
		c.ends(t, exit.CodeInterrupted, says)
		if f.fail == nil && len(f.cancelled) != 1 {
			t.Errorf("cancelled %v", f.cancelled)
		}
	}
}

// fakeParts stands for the parts that a run starts in its process. EndGrace calls kill, which may be nil.
type fakeParts struct {
	kill   func()
	bounds int // calls of StopWithin
}

func (p *fakeParts) EndGrace() {
	if p.kill != nil {
		p.kill()
	}
}

func (p *fakeParts) ExtraGrace() time.Duration { return 0 }

func (p *fakeParts) StopWithin(time.Duration) { p.bounds++ }

// TestSecondInterruptKillsALocalRun checks that programs that ignore SIGTERM are killed at the second signal or after a
// while, and that the run then ends as cancelled. A run that still does not end is ended by force.
func TestSecondInterruptKillsALocalRun(t *testing.T) {
	for name, test := range map[string]struct{ late, stuck, tooSoon bool }{
		"at the second signal":         {},
		"not at a third one at once":   {tooSoon: true},
		"after a while":                {late: true},
		"though its workflow is stuck": {stuck: true},
		"stuck, and without a signal":  {late: true, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := fake(t)
			nightly(f)
			f.untilCancel, f.onlyForced = true, true
			c := newCommand(t, nil, "")
			c.sys.forceAfter, c.sys.killedEndTimeout = time.Hour, time.Hour
			if test.late {
				c.sys.forceAfter = time.Millisecond
			}
			parts := &fakeParts{}
			if test.stuck {
				c.sys.killedEndTimeout = time.Millisecond
			} else if !test.tooSoon {
				parts.kill = func() { close(f.cancel) }
			}
			u, err := client.ParseGateways("test", f.url)
			must(t, err)
			a := client.New(u, client.Options{})
			defer a.Close()
			w := &follow.Watcher{Terminal: c.sys.terminal(), Client: a, Run: f.run.GetId(), OwnsRun: true, Local: parts}
			go func() { c.code <- exit.CodeOf(c.ctx, w.Watch(c.ctx)) }()
			c.stderr.await(t, "running")
			c.interrupt(exit.ErrInterrupted)
			c.stderr.await(t, "interrupt again to kill running tasks")
			if !test.late && !c.sys.signals.offer(os.Interrupt) {
				t.Error("a second signal does nothing")
			}
			if test.tooSoon {
				c.stderr.await(t, "killing running tasks; interrupt again to quit at once")
				if !c.sys.signals.offer(os.Interrupt) || !strings.Contains(c.stderr.String(), "\ninterrupt ignored: ") {
					t.Errorf("a third signal at once is not ignored with a line; stderr:\n%s", c.stderr)
				}
				close(f.cancel)
			}
			c.ends(t, exit.CodeInterrupted, "")
			forced := strings.Contains(c.stderr.String(), "ended by force, with 2 child runs and parts of fan-outs; nodes are stopping 3 attempts")
			if forced != test.stuck || len(f.cancelled) > 1 != test.stuck || parts.bounds > 0 != test.stuck {
				t.Errorf("cancelled %v, %d bounds of the stop; stderr:\n%s", f.cancelled, parts.bounds, c.stderr)
			}
		})
	}
}

// TestInterruptEndsFinallyOfALocalRun checks that the first interrupt during `finally` cancels nothing, and that the next one, once a
// person could read what it does, ends `finally`.
func TestInterruptEndsFinallyOfALocalRun(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.untilCancel, f.onlyForced = true, true
	for _, m := range f.messages[:len(f.messages)-1] {
		m.Run.Error = phrase.InFinally(v1.RunCompleted, "")
	}
	c := newCommand(t, nil, "")
	var seconds atomic.Int64
	c.sys.now = func() time.Time { return begin.Add(time.Duration(seconds.Add(1)) * time.Second) }
	parts := &fakeParts{kill: func() { close(f.cancel) }}
	u, err := client.ParseGateways("test", f.url)
	must(t, err)
	a := client.New(u, client.Options{})
	defer a.Close()
	w := &follow.Watcher{Terminal: c.sys.terminal(), Client: a, Run: f.run.GetId(), OwnsRun: true, Local: parts, HasFinally: true}
	go func() { c.code <- exit.CodeOf(c.ctx, w.Watch(c.ctx)) }()
	c.stderr.await(t, "running")
	c.interrupt(exit.ErrInterrupted)
	c.stderr.await(t, "the tasks have ended and finally runs; interrupt again to end it")
	f.mu.Lock()
	if len(f.cancelled) > 0 {
		t.Errorf("the first interrupt sends %v", f.cancelled)
	}
	f.mu.Unlock()
	for c.sys.signals.offer(os.Interrupt) && !strings.Contains(c.stderr.String(), "ending finally; interrupt again to kill its running tasks") {
		time.Sleep(time.Millisecond)
	}
	c.sys.signals.offer(os.Interrupt)
	c.ends(t, exit.CodeInterrupted, "")
	if len(f.cancelled) != 1 || !f.cancelled[0].GetNow() {
		t.Errorf("cancelled %v", f.cancelled)
	}
}

func TestWatchTellsWhyARunMakesNoProgress(t *testing.T) {
	f := fake(t)
	completed(f)
	stuck := proto.CloneOf(f.messages[0])
	stuck.Run.Problem = "its workflow task has failed 3 times in a row: out of order"
	f.messages = slices.Insert(f.messages, 1, stuck, stuck)
	got := run(t, "runs", "watch", "last", "--gateway", f.url)
	if n := strings.Count(got.stderr, "makes no progress: its workflow task has failed 3 times"); n != 1 {
		t.Errorf("the problem is told %d times:\n%s", n, got.stderr)
	}
}

func TestWatchOutlastsAGatewayThatRestarts(t *testing.T) {
	f := fake(t)
	completed(f)
	f.breaks = 2
	got := run(t, "runs", "watch", "last", "--gateway", f.url)
	if got.code != exit.CodeDone {
		t.Errorf("exit code %d", got.code)
	}
	if n := strings.Count(got.stderr, "lost the connection to the gateway at "+f.url+"; trying"); n == 0 {
		t.Errorf("the loss is not told:\n%s", got.stderr)
	}
	if n := strings.Count(got.stderr, "notify  completed"); n != 1 {
		t.Errorf("a change is told %d times:\n%s", n, got.stderr)
	}
}

func TestWatchFailsIfTheStreamEndsBeforeTheRun(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.messages = f.messages[:2]
	run(t, "runs", "watch", "last", "--gateway", f.url).ends(t, exit.CodeSystem, "")
}

func TestRunDetached(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.untilCancel = true
	file := write(t, "f.yaml", hello)
	if got := run(t, "run", file, "--gateway", f.url, "--detach"); got.code != exit.CodeDone || got.stdout != "nightly-4g5h6jkm\n" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	if got := run(t, "run", file, "--gateway", f.url, "--detach", "-o", "json"); got.stdout != "{\n  \"id\": \"nightly-4g5h6jkm\",\n  \"name\": \"nightly\",\n  \"warnings\": []\n}\n" {
		t.Errorf("%+v", got)
	}
	run(t, "run", file, "--detach").ends(t, exit.CodeUsage, "--gateway")
}
