package run

import (
	"cmp"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// isCancelDue reports whether a cancellation is waiting to be applied.
func (cs *commands) isCancelDue() bool { return !cs.cancelled && cs.cancelRequested() }

// isCancelled reports whether the run is being cancelled.
func (cs *commands) isCancelled() bool { return cs.cancelled }

// cancelRequested reports whether Temporal or a signal asks for a cancellation.
func (cs *commands) cancelRequested() bool {
	return cs.root.Err() != nil || workflow.GetSignalChannel(cs.root, names.CancelSignal).Len() > 0
}

// receiveCancel cancels the run if that was requested.
func (cs *commands) receiveCancel() {
	if cs.cancelRequested() {
		cs.cancel(cs.cancelReason())
	}
}

// cancel cancels the whole run. who is the person, or "" if unknown. The first reason counts.
func (cs *commands) cancel(who, why string) {
	if !cs.cancelled {
		cs.cancelled, cs.canceller = true, cmp.Or(cs.canceller, who)
		cs.raise(dag.Cancel{Error: why})
	}
}

// cancelReason receives the signals that cancel the run. It returns the person and the one-line reason of the first signal that
// has any. A signal may carry a RunCommand, a plain reason, or nothing.
func (cs *commands) cancelReason() (who, why string) {
	ch := workflow.GetSignalChannel(cs.root, names.CancelSignal)
	for ch.Len() > 0 {
		var sent converter.RawValue
		if cs.receiveSignal(ch, &sent) && why == "" {
			who, why = cancelText(sent)
		}
	}
	return who, why
}

func cancelText(sent converter.RawValue) (who, why string) {
	var c v1.RunCommand
	if payload := sent.Payload(); payload != nil && converter.GetDefaultDataConverter().FromPayload(payload, &c) != nil {
		c.Reset()
		if converter.GetDefaultDataConverter().FromPayload(payload, &c.Reason) != nil {
			return "", ""
		}
	}
	if c.GetBy() == "" && c.GetReason() == "" {
		return "", ""
	}
	return c.GetBy(), phrase.Because(phrase.By("cancelled", c.GetBy()), dag.OneLine(c.GetReason()))
}

// save hands over to the next execution who has cancelled the run.
func (cs *commands) save(c *v1.RunState) { c.CancelledBy = cs.canceller }

// restore continues a cancellation.
func (cs *commands) restore(c *v1.RunState) {
	cs.canceller, cs.cancelled = c.GetCancelledBy(), cs.core.Cancelled()
}

// cancelledBy returns who has cancelled the run, or "" if that is unknown.
func (cs *commands) cancelledBy() string { return cs.canceller }
