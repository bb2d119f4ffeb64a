package taskrunner

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	"switchyard/activities/logs"
	"switchyard/activities/results"
	"switchyard/activities/store/storetest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// endedBy returns a context that has ended with a cause.
func endedBy(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

func TestInterpret(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is full")
	stopped := executor.Result{ExitCode: 143, Signal: "SIGTERM", Stopped: true}
	for name, test := range map[string]struct {
		ctx           context.Context
		result        executor.Result
		err           error
		state, reason string
		text          string
		exitCode      int32
	}{
		"completed":           {state: "completed"},
		"exit code":           {result: executor.Result{ExitCode: 3}, state: "failed", reason: "exit_code", text: "exit code 3", exitCode: 3},
		"signal":              {result: executor.Result{ExitCode: 139, Signal: "SIGSEGV"}, state: "failed", reason: "signal", text: "ended by SIGSEGV", exitCode: 139},
		"out of memory":       {result: executor.Result{ExitCode: 137, Signal: "SIGKILL", OOMKilled: true}, state: "killed_oom", reason: "oom", text: "out of memory", exitCode: 137},
		"timeout":             {ctx: endedBy(errTimeout), result: stopped, state: "failed", reason: "timeout", text: "the attempt took longer than its timeout", exitCode: 143},
		"cancelled":           {ctx: endedBy(heartbeat.ErrCancelled), result: stopped, state: "cancelled", reason: "cancelled", exitCode: 143},
		"cancelled by worker": {ctx: endedBy(nil), result: stopped, state: "cancelled", reason: "cancelled", exitCode: 143},
		"not known any more":  {ctx: endedBy(heartbeat.ErrGone), result: stopped, state: "cancelled", reason: "cancelled", exitCode: 143},
		"drained":             {ctx: endedBy(drained{"node a is draining"}), result: stopped, state: "moved", reason: "draining", text: "node a is draining"},
		"lease lost":          {ctx: endedBy(errLeaseLost), result: stopped, state: "moved", reason: "lease_lost", text: "the server did not answer for too long"},
		"not started":         {ctx: endedBy(errNotStarted), result: stopped, state: "moved", reason: "not_started", text: "the attempt did not start in time"},
		// The program ended by itself before the cancellation reached it.
		"ended in time": {ctx: endedBy(heartbeat.ErrCancelled), state: "completed"},
		"not found": {err: &executor.StartError{ExitCode: 127, Err: errors.New("nope: not found")},
			state: "failed", reason: "start_failed", text: "nope: not found", exitCode: 127},
		"bad spec": {err: &executor.StartError{ExitCode: 126, BadSpec: true, Err: errors.New("command[1] is not a string")},
			state: "failed", reason: "bad_spec", text: "command[1] is not a string", exitCode: 126},
		"broken node": {err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.ctx == nil {
				test.ctx = context.Background()
			}
			res, err := interpret(test.ctx, test.result, test.err)
			if test.state == "" {
				if !errors.Is(err, broken) {
					t.Errorf("got %v and error %v, want the node's", res, err)
				}
				return
			}
			if err != nil || res.GetState() != test.state || res.GetReason() != test.reason || res.GetError() != test.text ||
				res.GetResult().GetExitCode() != test.exitCode {
				t.Errorf("got %v, error %v", res, err)
			}
		})
	}
}

func TestInterpretKeepsFigures(t *testing.T) {
	t.Parallel()
	res, err := interpret(t.Context(), executor.Result{CPUTime: 1500 * time.Millisecond, PeakMemory: 3 << 20}, nil)
	if err != nil || res.GetResult().GetCpuSeconds() != 1.5 || res.GetResult().GetPeakMemoryMb() != 3 {
		t.Errorf("got %v, error %v", res, err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ state, reason, stderr, want string }{
		"one line":         {"failed", "exit_code", "no such host\n", "E: no such host"},
		"last line first":  {"failed", "exit_code", "first\r\n  second\n\tno such host\n", "E: no such host\nstandard error before that:\nfirst\r\n  second"},
		"blank at the end": {"failed", "signal", "why\n \r\n\t\n", "E: why"},
		"nothing said":     {"failed", "exit_code", " \n", "E"},
		"long":             {"failed", "exit_code", "first\n" + strings.Repeat("é", 600), "E: ..." + strings.Repeat("é", 500)},
		"many lines":       {"failed", "exit_code", strings.Repeat("é", 600) + "\nend", "E: end\nstandard error before that:\n..." + strings.Repeat("é", 496)},
		"timeout":          {"failed", "timeout", "why", "E"},
		"completed":        {"completed", "", "a warning", "E"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := &historyv1.ExecuteResponse{State: test.state, Reason: test.reason, Error: "E", Result: &v1.TaskResult{Stderr: test.stderr}}
			if explain(res); res.Error != test.want {
				t.Errorf("got %q, want %q", res.Error, test.want)
			}
		})
	}
}

// The answer that travels stays within its limit and reports what was cut. The store has all of it.
func TestKeep(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, t.TempDir())
	n := &Node{Store: s}
	ctx := t.Context()
	attempt := int32(0)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 10_000))
		limit := size.Draw(t, "limit")
		whole := &historyv1.ExecuteResponse{State: "completed", Result: &v1.TaskResult{
			Stdout: strings.Repeat("ö", size.Draw(t, "stdout")), Stderr: strings.Repeat("é", size.Draw(t, "stderr")),
			Output: &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewStringValue(strings.Repeat("y", size.Draw(t, "output")))}},
		}}
		attempt++
		before := proto.CloneOf(whole)
		req := &historyv1.ExecuteRequest{RunId: "r-1", Task: "t", Attempt: attempt, InlineLimit: int32(limit)}
		got, err := n.records().keepResult(ctx, req, &membersOf(req)[0], whole)
		if err != nil {
			t.Fatal(err)
		}
		r := got.GetResult()
		output := proto.Size(r.GetOutput())
		if output > results.MaxInline || output+len(r.GetStdout())+len(r.GetStderr()) > limit {
			t.Fatalf("%d bytes of output, %d of stdout and %d of stderr go beyond %d", output, len(r.GetStdout()), len(r.GetStderr()), limit)
		}
		if !utf8.ValidString(r.GetStdout()) || !utf8.ValidString(r.GetStderr()) {
			t.Fatal("a character was cut in two")
		}
		b := before.GetResult()
		if !strings.HasSuffix(b.GetStdout(), r.GetStdout()) || r.GetStdoutTruncated() != (len(r.GetStdout()) < len(b.GetStdout())) ||
			!strings.HasSuffix(b.GetStderr(), r.GetStderr()) || r.GetStderrTruncated() != (len(r.GetStderr()) < len(b.GetStderr())) {
			t.Fatalf("%d of %d bytes of stdout, cut: %v; %d of %d of stderr, cut: %v", len(r.GetStdout()), len(b.GetStdout()), r.GetStdoutTruncated(),
				len(r.GetStderr()), len(b.GetStderr()), r.GetStderrTruncated())
		}
		if got.GetRecord() == "" {
			if !proto.Equal(got, before) {
				t.Fatalf("something is missing, and there is no record")
			}
			return
		}
		var record historyv1.ExecuteResponse
		if err := s.GetMessage(ctx, got.GetRecord(), &record); err != nil || !proto.Equal(&record, before) {
			t.Fatalf("the record is not what the task left: %v", err)
		}
	})
}

// TestResultWarnsOfALogThatIsNotWhole closes a log whose store takes no more of it.
func TestResultWarnsOfALogThatIsNotWhole(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	s.LimitLogs(1)
	l := &taskLog{
		Writer: logs.NewWriter(s, logs.Attempt{Run: "r", Task: "a"}, logs.Options{}),
		logger: slog.New(slog.DiscardHandler), req: &historyv1.ExecuteRequest{RunId: "r", Task: "a"},
	}
	if _, err := l.Stream(logs.Stdout).Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	res := &historyv1.ExecuteResponse{State: v1.TaskCompleted, Result: &v1.TaskResult{Warning: "a process was killed"}}
	l.closeOrSuspend(t.Context(), false, res)
	if got := res.GetResult().GetWarning(); !strings.HasPrefix(got, "a process was killed; 1048693 bytes of output are missing in the log: ") {
		t.Errorf("the warning is %q", got)
	}
}
