package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/logs"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Causes for which an attempt is stopped.
var (
	errTimeout    = errors.New("timeout")
	errLeaseLost  = errors.New("the server did not answer for too long")
	errNotStarted = errors.New("the attempt did not start in time")
	errStopAsked  = errors.New("a person has stopped the attempt")
)

// moved returns the answer that hands an attempt back. The task is placed again, and whatever ran of it does not count.
func moved(reason, text string) *historyv1.ExecuteResponse {
	return &historyv1.ExecuteResponse{State: v1.AttemptMoved, Reason: reason, Error: text}
}

// stopped returns the answer of an attempt that ended because ctx ended.
func stopped(ctx context.Context, result *v1.TaskResult) *historyv1.ExecuteResponse {
	cause := context.Cause(ctx)
	switch cause {
	case errTimeout:
		return &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonTimeout, Error: "the attempt took longer than its timeout", Result: result}
	case errLeaseLost:
		return moved(v1.ReasonLeaseLost, cause.Error())
	case errNotStarted:
		return moved(v1.ReasonNotStarted, cause.Error())
	}
	if d, ok := errors.AsType[drained](cause); ok {
		return moved(v1.ReasonDraining, d.why)
	}
	if cause == errStopAsked {
		return &historyv1.ExecuteResponse{State: v1.TaskStopped, Result: result}
	}
	if idle, ok := errors.AsType[idledOut](cause); ok {
		return &historyv1.ExecuteResponse{State: v1.TaskStopped, Reason: v1.ReasonIdle, Error: idle.Error(), Result: result}
	}
	return &historyv1.ExecuteResponse{State: v1.TaskCancelled, Reason: v1.ReasonCancelled, Result: result}
}

// interpret translates the end of a program into the answer of its task. An error is a fault of the node.
func interpret(ctx context.Context, r executor.Result, err error) (*historyv1.ExecuteResponse, error) {
	if start := executor.AsStartError(err); start != nil {
		reason := v1.ReasonStartFailed
		if start.BadSpec {
			reason = v1.ReasonBadSpec
		}
		return &historyv1.ExecuteResponse{
			State: v1.TaskFailed, Reason: reason, Error: start.Error(),
			Result: &v1.TaskResult{ExitCode: int32(start.ExitCode)},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	result := &v1.TaskResult{
		ExitCode:     int32(r.ExitCode),
		Signal:       r.Signal,
		CpuSeconds:   r.CPUTime.Seconds(),
		PeakMemoryMb: float64(r.PeakMemory) / (1 << 20),
		ImageDigest:  r.Image,
		Container:    r.Container,
		Warning:      r.Warning,
	}
	switch {
	case r.Stopped:
		return stopped(ctx, result), nil
	case r.OOMKilled:
		return &historyv1.ExecuteResponse{State: v1.TaskKilledOOM, Reason: v1.ReasonOOM, Error: "out of memory", Result: result}, nil
	case r.Failure != nil:
		if result.ExitCode == 0 {
			result.ExitCode = -1 // no program has set an exit code
		}
		state := v1.TaskFailed
		if r.Failure.Reason == v1.ReasonEvicted {
			state = v1.TaskLost
		}
		return &historyv1.ExecuteResponse{State: state, Reason: r.Failure.Reason, Error: r.Failure.Err.Error(), Result: result}, nil
	case r.Signal != "":
		return &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonSignal, Error: "ended by " + r.Signal, Result: result}, nil
	case r.ExitCode != 0:
		return &historyv1.ExecuteResponse{State: v1.TaskFailed, Reason: v1.ReasonExitCode, Error: fmt.Sprintf("exit code %d", r.ExitCode), Result: result}, nil
	}
	return &historyv1.ExecuteResponse{State: v1.TaskCompleted, Result: result}, nil
}

// collectStreams copies the tails of the streams into the result.
func collectStreams(r *v1.TaskResult, log *logs.Writer) {
	r.Stdout, r.StdoutTruncated = log.Tail("stdout")
	r.Stderr, r.StderrTruncated = log.Tail("stderr")
}

// collectFiles puts the output and context files of the task into the answer, with the values of secrets masked. Only a
// completed task updates the context. An unreadable or malformed file fails a task that had completed.
func (w *work) collectFiles(res *historyv1.ExecuteResponse) {
	output, err := w.ws.Output(w.secrets.masks.Bytes)
	if err == nil {
		res.Result.Output = w.secrets.maskStruct(output)
	}
	if res.State != v1.TaskCompleted {
		return
	}
	var update *structpb.Struct
	if err == nil {
		update, err = w.ws.ContextUpdate(w.secrets.masks.Bytes)
	}
	if err != nil {
		res.State, res.Reason, res.Error = v1.TaskFailed, v1.ReasonOutput, err.Error()
		return
	}
	if len(update.GetFields()) > 0 {
		res.Result.ContextUpdate = w.secrets.maskStruct(update)
	}
}

// maxErrorTail bounds, in characters, how much of a task's standard error its error text quotes.
const maxErrorTail = 500

// explain appends the tail of a failed task's standard error to its error text. The last line comes first, because lists
// show only that; the lines before it follow below.
func explain(res *historyv1.ExecuteResponse) {
	if res.State != v1.TaskFailed || res.Reason != v1.ReasonExitCode && res.Reason != v1.ReasonSignal {
		return
	}
	text := strings.TrimSpace(res.GetResult().GetStderr())
	if runes := []rune(text); len(runes) > maxErrorTail {
		text = "..." + string(runes[len(runes)-maxErrorTail:])
	}
	end := strings.LastIndexByte(text, '\n') + 1
	line, before := strings.TrimSpace(text[end:]), strings.TrimSpace(text[:end])
	if line == "" {
		return
	}
	res.Error += ": " + line
	if before != "" {
		res.Error += "\nstandard error before that:\n" + before
	}
}
