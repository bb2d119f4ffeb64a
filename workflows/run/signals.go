package run

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// receiveEach applies the signals with a name that have come, in order. It leaves out those that cannot be read.
func receiveEach[T any](r *run, name string, apply func(*T)) {
	ch := workflow.GetSignalChannel(r.root, name)
	for ch.Len() > 0 {
		r.signals++
		if sent := new(T); ch.ReceiveAsync(sent) {
			apply(sent)
		}
	}
}

// isCancelDue reports whether a cancellation is waiting to be applied.
func (r *run) isCancelDue() bool { return !r.commands.IsCancelled && r.cancelRequested() }

// cancelRequested reports whether Temporal or a signal asks for a cancellation.
func (r *run) cancelRequested() bool {
	return r.root.Err() != nil || workflow.GetSignalChannel(r.root, names.CancelSignal).Len() > 0
}

// receiveCancel cancels the run if that was requested.
func (r *run) receiveCancel() {
	if who, why, ok := r.receiveCancelSignals(); ok || r.root.Err() != nil {
		r.carryOutCommand(r.commands.Cancel(who, why))
	}
}

// receiveCancelSignals receives the signals that cancel the run, and reports whether there was one. It returns the person and the
// one-line reason of the first signal that has any. A signal that does not cancel the run is logged as refused.
func (r *run) receiveCancelSignals() (who, why string, ok bool) {
	receiveEach(r, names.CancelSignal, func(sent *converter.RawValue) {
		payload := sent.Payload()
		c, refusal := command.ReadCancel(payload.GetData(), string(payload.GetMetadata()[converter.MetadataEncoding]))
		switch {
		case refusal == "":
			ok = true
			if why == "" {
				who, why = c.GetBy(), c.GetReason()
			}
		case r.status != nil:
			r.logRefused(c.GetTask(), v1.TaskCancelled, dag.OneLine(c.GetBy()), refusal)
		}
	})
	return who, why, ok
}

// refuseSignals receives signals that look like decisions and logs them as refused. Decisions are updates only; a signal has no
// answer that could report the refusal.
func (r *run) refuseSignals(name, verdict string) {
	receiveEach(r, name, func(sent *converter.RawValue) {
		var c historyv1.TaskCommand
		if payload := sent.Payload(); payload == nil || dataconverter.New().FromPayload(payload, &c) != nil {
			c.Reset()
		}
		r.logRefused(c.GetTask(), verdict, dag.OneLine(c.GetBy()), "signals cannot approve or reject; use `switchyard runs approve` or `reject`")
	})
}

// logRefused logs a command that does not count.
func (r *run) logRefused(task, verdict, claimed, why string) {
	i := eventlog.WholeRun
	if index, ok := r.core.Index(task); ok && task != "" {
		i = index
	}
	r.log.Add(r.now(), v1.EventRefused, i, "", 0, 0, phrase.Because(phrase.By(verdict, claimed), why), eventlog.CommandFacts(claimed, why)...)
}
