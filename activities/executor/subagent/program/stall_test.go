package program

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	initLine   = `{"type":"system","subtype":"init","session_id":"s-1","model":"scripted-1","tools":["Bash"]}` + "\n"
	sayLine    = `{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"hm"}],"usage":{"input_tokens":10}}}` + "\n"
	resultLine = `{"type":"result","subtype":"success","is_error":false,"result":"late","session_id":"s-1"}` + "\n"
)

// fakeShell is an executor whose program prints a text, and another one when it is stopped.
type fakeShell struct{ prints, printsStopped string }

func (fakeShell) Type() string                        { return v1.TypeShell }
func (fakeShell) Capabilities() executor.Capabilities { return executor.Capabilities{} }

func (s fakeShell) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	spawned()
	_, _ = io.WriteString(a.Stdout, s.prints)
	<-ctx.Done()
	_, _ = io.WriteString(a.Stdout, s.printsStopped)
	return executor.Result{ExitCode: 143, Signal: "SIGTERM", Stopped: true}, nil
}

func TestProgramThatPrintsNoLineHasStalled(t *testing.T) {
	for name, test := range map[string]struct {
		shell fakeShell
		text  string
	}{
		"in a line":               {fakeShell{prints: initLine + sayLine + "no line"}, "hm"},
		"before its first line":   {fakeShell{}, ""},
		"with a result afterward": {fakeShell{initLine, resultLine}, "late"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				result, report, err := Run(t.Context(), test.shell, executor.Attempt{}, Options{Command: []string{"agent"}, Prompt: "do it"}, func() {})
				if took := time.Since(began); err != nil || result.Stopped || took != defaultStallTimeout || report.Text != test.text {
					t.Errorf("result %+v, text %q, error %v after %v", result, report.Text, err, took)
				}
				if f := report.Failure; f == nil || f.Reason != v1.ReasonStalled || f.Err.Error() != "the program printed no line for 10m0s" {
					t.Errorf("failure %+v", f)
				}
			})
		})
	}
}

// slowLog delays each write.
type slowLog struct{ delay time.Duration }

func (s slowLog) Write(p []byte) (int, error) {
	time.Sleep(s.delay)
	return len(p), nil
}

func TestSlowLogIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := executor.Attempt{Streams: executor.Streams{Stdout: slowLog{2 * defaultStallTimeout}}}
		_, report, err := Run(t.Context(), fakeShell{prints: initLine + sayLine + sayLine + resultLine}, a, Options{Command: []string{"agent"}, Prompt: "do it"}, func() {})
		if err != nil || report.Failure != nil || report.Text != "late" {
			t.Errorf("report %+v, error %v", report, err)
		}
	})
}
