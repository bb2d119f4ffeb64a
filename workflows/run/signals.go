package run

import (
	"slices"

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

// isCancelDue reports whether a cancellation is waiting to be applied. Only a run with `finally` has a use for a second one.
func (r *run) isCancelDue() bool {
	if !r.commands.IsCancelled {
		return r.cancelRequested()
	}
	return r.core != nil && r.core.HasFinally() && r.hasCancelSignal()
}

// cancelRequested reports whether Temporal or a signal asks for a cancellation.
func (r *run) cancelRequested() bool { return r.root.Err() != nil || r.hasCancelSignal() }

func (r *run) hasCancelSignal() bool {
	return workflow.GetSignalChannel(r.root, names.CancelSignal).Len() > 0
}

// receiveCancel cancels the run if that was requested. Requests that come at once count as one, unless they differ in what they
// end.
func (r *run) receiveCancel() {
	requests := r.receiveCancelSignals()
	if r.root.Err() != nil && !r.commands.IsCancelled {
		requests = append(requests, command.Cancellation{})
	}
	first := slices.IndexFunc(requests, func(c command.Cancellation) bool { return c.Reason != "" })
	for i, c := range requests {
		if i == 0 && first > 0 {
			c.By, c.Reason = requests[first].By, requests[first].Reason
		}
		effects, ok := r.commands.Cancel(c)
		if r.carryOutCommand(effects); !ok {
			r.logRefused("", v1.TaskCancelled, dag.OneLine(c.By), "`finally` runs until its end; `switchyard runs cancel --now` ends it")
		}
	}
}

// receiveCancelSignals receives the signals that cancel the run. A signal that does not is logged as refused.
func (r *run) receiveCancelSignals() (requests []command.Cancellation) {
	receiveEach(r, names.CancelSignal, func(sent *converter.RawValue) {
		payload := sent.Payload()
		c, refusal := command.ReadCancel(payload.GetData(), string(payload.GetMetadata()[converter.MetadataEncoding]))
		switch {
		case refusal == "":
			requests = append(requests, command.Cancellation{By: c.GetBy(), Reason: c.GetReason(), RequestID: c.GetRequestId(), Now: c.GetNow()})
		case r.status != nil:
			r.logRefused(c.GetTask(), v1.TaskCancelled, dag.OneLine(c.GetBy()), refusal)
		}
	})
	return requests
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
