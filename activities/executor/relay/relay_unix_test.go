//go:build unix

package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/relay/session"
	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// soon bounds operations that do not wait, on a busy machine.
const soon = time.Minute

// echo is a program that answers each message with its number and length. It answers a message with the word SLOW once
// a file exists, DEAF likewise whatever interrupts it, and HANG only after an interrupt. DIE ends the program.
const echo = `
n=0
result() { echo '{"type":"result","subtype":"success","result":"'"$1"'","total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":2}}'; }
while read -r line; do
	case $line in *control_request*) continue;; esac
	n=$((n+1)); printf '%s\n' "$line" >>"$DIR/messages"
	echo '{"type":"assistant","message":{"id":"m'$n'","model":"scripted-1","content":[{"type":"text","text":"thinking of '$n'"}]}}'
	case $line in
	*SLOW*) until [ -e "$DIR/go" ]; do sleep 0.02; done;;
	*HANG*) while read -r line; do case $line in *control_request*) [ "$DEAF" ] || break;; esac; done
		echo '{"type":"result","subtype":"error_during_execution","is_error":true}'; continue;;
	*DEAF*) until [ -e "$DIR/go" ]; do sleep 0.02; done; result "late $n"; continue;;
	*TURNS*) echo '{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":3}'; continue;;
	*DIE*) exit 3;;
	esac
	result "answer $n"
done`

// attachment is an attached session of a test.
type attachment struct {
	t      *testing.T
	folder string
	dir    string // the program's
	detach context.CancelFunc
	ended  chan struct{}
	result executor.Result
	err    error
	log    testneeds.Output
}

// attach runs a scripted program for a test and returns when its session accepts connections.
func attach(t *testing.T, folder, name, script string) *attachment {
	t.Helper()
	sh, err := shell.New(shell.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := &attachment{t: t, folder: folder, dir: t.TempDir(), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	a.detach = cancel
	ready := make(chan string, 1)
	go func() {
		defer close(a.ended)
		a.result, a.err = session.Attach(ctx, session.AttachOptions{
			Shell: sh, Dir: folder, Name: name, Command: []string{"sh", "-c", "DIR=" + a.dir + "\n" + script},
			Log: &a.log, Stderr: &a.log, Ready: func(id string) { ready <- id }, Grace: 200 * time.Millisecond,
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-a.ended
		if err := sh.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	select {
	case <-ready:
	case <-a.ended:
	case <-time.After(soon):
		t.Fatalf("the session cannot be reached; log %q", a.log.String())
	}
	return a
}

// folder returns a session folder for a test. Its path is long, to exceed the limit on socket paths.
func folder(t *testing.T) string {
	t.Helper()
	parent := filepath.Join(t.TempDir(), strings.Repeat("long", 20))
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := session.Folder(parent)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sent is a message in flight, or its outcome.
type sent struct {
	executor.Result
	err     error
	log     testneeds.Output
	notices testneeds.Output
	output  string
	spawned bool
	done    chan struct{}
}

// send runs a task that sends a message to a session, in the background.
func send(ctx context.Context, t *testing.T, folder string, spec map[string]any) *sent {
	t.Helper()
	s, err := structpb.NewStruct(spec)
	if err != nil {
		t.Fatal(err)
	}
	out := &sent{done: make(chan struct{})}
	dir := t.TempDir()
	input, output := filepath.Join(dir, "input.json"), filepath.Join(dir, "output")
	if err := os.WriteFile(input, []byte(`{"outputs":{"a":"what a has found"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(out.done)
		out.Result, out.err = New(folder).Run(ctx, executor.Attempt{
			ID: "x", Spec: s, Streams: executor.Streams{Stdout: &out.log}, Env: map[string]string{"SWITCHYARD_INPUT": input, "SWITCHYARD_OUTPUT": output},
			Reports: executor.Reports{Notify: func(line string) { fmt.Fprintln(&out.notices, line) }},
		}, func() { out.spawned = true })
		text, _ := os.ReadFile(output)
		out.output = string(text)
	}()
	return out
}

// wait returns once a message has been answered, and fails the test if that takes too long.
func (s *sent) wait(t *testing.T) *sent {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(soon):
		t.Fatal("the message has not come back")
	}
	return s
}

func asked(prompt string) map[string]any {
	return map[string]any{"targetSessionId": "s-1", "prompt": prompt, "awaitResponse": true}
}

// messages returns the messages that the program has read.
func (a *attachment) messages() []string {
	text, _ := os.ReadFile(filepath.Join(a.dir, "messages"))
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// hasRead returns a condition that reports whether the program has read a message with a text.
func (a *attachment) hasRead(text string) func() bool {
	return func() bool {
		return slices.ContainsFunc(a.messages(), func(m string) bool { return strings.Contains(m, text) })
	}
}

func TestRelayReturnsTheAnswerOfASession(t *testing.T) {
	t.Parallel()
	f := folder(t)
	a := attach(t, f, "s-1", echo)
	if live := session.List(t.Context(), f); !slices.Equal(live, []string{"s-1"}) {
		t.Errorf("live sessions %v", live)
	}
	spec := asked("What is \"it\"?\nSay.")
	spec["fullContext"] = true
	got := send(t.Context(), t, f, spec).wait(t)
	if got.err != nil || got.Failure != nil || got.ExitCode != 0 || got.Stopped || !got.spawned {
		t.Fatalf("result %+v, failure %v, error %v", got.Result, got.Failure, got.err)
	}
	if got.output != `{"text":"answer 1"}` || got.log.String() != "thinking of 1\nanswer 1\n" {
		t.Errorf("output %s, log %q", got.output, got.log.String())
	}
	u := got.Agent.Usage
	if u.Turns != 1 || u.InputTokens != 10 || u.CostUsd != 0.5 || u.Session != "s-1" || u.Model != "scripted-1" || len(got.Agent.Events) != 1 {
		t.Errorf("agent %+v", got.Agent)
	}
	var m struct {
		Type    string
		Message struct {
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(a.messages()[0]), &m); err != nil {
		t.Fatal(err)
	}
	if text := m.Message.Content[0].Text; m.Type != "user" || !strings.HasPrefix(text, "What is \"it\"?\nSay.") || !strings.HasSuffix(text, `{"outputs":{"a":"what a has found"}}`) {
		t.Errorf("the program has read %q", text)
	}
	if log := a.log.String(); log != "thinking of 1\nanswer 1\n" {
		t.Errorf("the session has logged %q", log)
	}
}

func TestRelaysToOneSessionTakeTurns(t *testing.T) {
	t.Parallel()
	f := folder(t)
	a := attach(t, f, "s-1", echo)
	first := send(t.Context(), t, f, asked("SLOW"))
	testneeds.Await(t, "the first message is read", a.hasRead("SLOW"))
	second := send(t.Context(), t, f, asked("second"))
	testneeds.Await(t, "the second message waits", func() bool { return second.notices.String() != "" })
	third := send(t.Context(), t, f, map[string]any{"targetSessionId": "s-1", "prompt": "third"})
	testneeds.Await(t, "the third message waits", func() bool { return third.notices.String() != "" })
	if got := len(a.messages()); got != 1 {
		t.Errorf("%d messages are read at once", got)
	}
	if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, s := range []*sent{first, second, third} {
		s.wait(t)
		if s.err != nil || s.Failure != nil {
			t.Fatalf("message %d: failure %v, error %v", i+1, s.Failure, s.err)
		}
	}
	if first.output != `{"text":"answer 1"}` || second.output != `{"text":"answer 2"}` || third.output != "" {
		t.Errorf("outputs %s, %s, %s", first.output, second.output, third.output)
	}
	if got := second.notices.String(); got != "1 message to the session comes first\n" {
		t.Errorf("notice %q", got)
	}
	if third.Agent != nil {
		t.Errorf("a message without an answer reports %+v", third.Agent)
	}
}

func TestACancelledRelayFreesItsTurn(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"HANG", "DEAF"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			f := folder(t)
			a := attach(t, f, "s-1", echo)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := send(ctx, t, f, asked(word))
			testneeds.Await(t, "the first message is read", a.hasRead(word))
			waiting, giveUp := context.WithCancel(t.Context())
			second := send(waiting, t, f, asked("second"))
			testneeds.Await(t, "the second message waits", func() bool { return second.notices.String() != "" })
			giveUp()
			if second.wait(t); !second.Stopped || second.err != nil {
				t.Errorf("result %+v, error %v", second.Result, second.err)
			}
			third := send(t.Context(), t, f, asked("third"))
			testneeds.Await(t, "the third message waits", func() bool { return third.notices.String() != "" })
			cancel()
			if first.wait(t); !first.Stopped || first.err != nil || first.Failure != nil {
				t.Errorf("result %+v, error %v", first.Result, first.err)
			}
			time.Sleep(time.Second) // the third turn begins without the result of the first one
			if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if third.wait(t); third.err != nil || third.output != `{"text":"answer 2"}` {
				t.Errorf("output %s, failure %v, error %v", third.output, third.Failure, third.err)
			}
			if a.hasRead("second")() {
				t.Error("the program has read a message that was given up before its turn")
			}
		})
	}
}

func TestASessionThatEndsFailsItsRelays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prompt string
		detach bool
		want   string
	}{
		"program": {"DIE", false, "session s-1 has ended: its program exited with code 3"},
		"detach":  {"HANG", true, "session s-1 has ended: it was detached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := folder(t)
			a := attach(t, f, "s-1", echo)
			got := send(t.Context(), t, f, asked(test.prompt))
			if testneeds.Await(t, "the message is read", a.hasRead(test.prompt)); test.detach {
				a.detach()
			}
			got.wait(t)
			if got.err != nil || got.Failure == nil || got.Failure.Reason != v1.ReasonNoSession || got.Failure.Err.Error() != test.want {
				t.Errorf("failure %+v, error %v, want %q", got.Failure, got.err, test.want)
			}
			<-a.ended
			if live := session.List(t.Context(), f); len(live) != 0 {
				t.Errorf("live sessions %v", live)
			}
		})
	}
}

func TestRelayToMissingSessionListsLiveSessions(t *testing.T) {
	t.Parallel()
	f := folder(t)
	spec := asked("hello")
	none := send(t.Context(), t, f, spec).wait(t)
	if want := "session s-1 does not exist; this node has no sessions (start one with `switchyard agent attach`)"; none.Failure == nil || none.Failure.Err.Error() != want || none.spawned {
		t.Errorf("failure %+v, error %v", none.Failure, none.err)
	}
	attach(t, f, "b", echo)
	attach(t, f, "a", echo)
	// The socket is left from a killed process.
	if err := os.WriteFile(filepath.Join(f, "s-1.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	some := send(t.Context(), t, f, spec).wait(t)
	if want := "session s-1 does not exist on this node (available: a, b)"; some.Failure == nil || some.Failure.Reason != v1.ReasonNoSession || some.Failure.Err.Error() != want {
		t.Errorf("failure %+v, error %v", some.Failure, some.err)
	}
	attach(t, f, "s-1", echo)
	if got := send(t.Context(), t, f, spec).wait(t); got.output != `{"text":"answer 1"}` {
		t.Errorf("output %s, failure %v", got.output, got.Failure)
	}
}

func TestAnAnswerThatIsAFailureFailsTheTask(t *testing.T) {
	t.Parallel()
	f := folder(t)
	attach(t, f, "s-1", echo)
	got := send(t.Context(), t, f, asked("TURNS")).wait(t)
	if got.err != nil || got.Failure == nil || got.Failure.Reason != v1.ReasonMaxTurns || got.output != "" || got.Agent == nil {
		t.Errorf("result %+v, failure %v, error %v", got.Result, got.Failure, got.err)
	}
}

func TestProgramReportsItsSession(t *testing.T) {
	t.Parallel()
	f := folder(t)
	a := attach(t, f, "", `echo '{"type":"system","subtype":"init","session_id":"own-id"}'`+echo)
	if live := session.List(t.Context(), f); !slices.Equal(live, []string{"own-id"}) {
		t.Errorf("live sessions %v; log %q", live, a.log.String())
	}
}

func TestASessionIsAttachedOnce(t *testing.T) {
	t.Parallel()
	f := folder(t)
	attach(t, f, "s-1", echo)
	for name, script := range map[string]string{"s-1": echo, "": `echo '{"type":"system","subtype":"init","session_id":"s-1"}'` + echo} {
		again := attach(t, f, name, script)
		if <-again.ended; again.err == nil || again.err.Error() != "session s-1 is already attached; choose another name" {
			t.Errorf("error %v", again.err)
		}
	}
	if got := send(t.Context(), t, f, asked("hello")).wait(t); got.output != `{"text":"answer 1"}` {
		t.Errorf("output %s, failure %v", got.output, got.Failure)
	}
}

func TestSharedFolderIsRefused(t *testing.T) {
	t.Parallel()
	f := folder(t)
	if err := os.Mkdir(f, 0o755); err != nil {
		t.Fatal(err)
	}
	a := attach(t, f, "s-1", echo)
	if <-a.ended; a.err == nil || !strings.Contains(a.err.Error(), "is not a private folder of this user") {
		t.Errorf("error %v", a.err)
	}
	if got := send(t.Context(), t, f, asked("hello")).wait(t); got.Failure == nil || got.Failure.Reason != v1.ReasonNoSession {
		t.Errorf("failure %+v", got.Failure)
	}
}

func TestABadSpecStartsNothing(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]map[string]any{
		"no target":     {"prompt": "x"},
		"a path":        {"targetSessionId": "../x", "prompt": "x"},
		"no prompt":     {"targetSessionId": "s-1", "prompt": " "},
		"unknown field": {"targetSessionId": "s-1", "prompt": "x", "nonsense": 1},
		"wrong kind":    {"targetSessionId": 7, "prompt": "x"},
	} {
		got := send(t.Context(), t, folder(t), spec).wait(t)
		if start := executor.AsStartError(got.err); start == nil || !start.BadSpec {
			t.Errorf("%s: error %v", name, got.err)
		}
	}
}
