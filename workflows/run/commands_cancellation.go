package run

import (
	"bytes"
	"cmp"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
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
	if who, why, ok := cs.receiveCancelSignals(); ok || cs.root.Err() != nil {
		cs.cancel(who, why)
	}
}

// cancel cancels the whole run. who is the person, or "" if unknown. The first reason counts.
func (cs *commands) cancel(who, why string) {
	if !cs.cancelled {
		cs.cancelled, cs.canceller = true, cmp.Or(cs.canceller, who)
		cs.raise(dag.Cancel{Error: why})
	}
}

// receiveCancelSignals receives the signals that cancel the run, and reports whether there was one. It returns the person and the
// one-line reason of the first signal that has any. A signal may carry a RunCommand, a plain reason, or anything else but
// another object, such as one that names a task: that one is logged as refused.
func (cs *commands) receiveCancelSignals() (who, why string, ok bool) {
	ch := workflow.GetSignalChannel(cs.root, names.CancelSignal)
	for ch.Len() > 0 {
		var sent converter.RawValue
		if !cs.receiveSignal(ch, &sent) {
			continue
		}
		c, refusal := cancelCommand(sent)
		switch {
		case refusal == "":
			ok = true
			if reason := dag.OneLine(c.GetReason()); why == "" && (c.GetBy() != "" || reason != "") {
				who, why = c.GetBy(), phrase.Because(phrase.By("cancelled", c.GetBy()), reason)
			}
		case cs.status != nil:
			cs.logRefused(c.GetTask(), v1.TaskCancelled, dag.OneLine(c.GetBy()), refusal)
		}
	}
	return who, why, ok
}

// cancelCommand returns the content of a signal, and why it does not cancel the run, or "" if it does. A JSON object must be known as
// a whole, because it may mean less than the run; a message of another program may have fields that this version does not know.
func cancelCommand(sent converter.RawValue) (c *historyv1.TaskCommand, refusal string) {
	c = &historyv1.TaskCommand{}
	payload := sent.Payload()
	read := protojson.UnmarshalOptions{DiscardUnknown: string(payload.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingProtoJSON}
	switch data := bytes.TrimSpace(payload.GetData()); {
	case !bytes.HasPrefix(data, []byte("{")):
		if converter.GetDefaultDataConverter().FromPayload(payload, &c.Reason) != nil {
			c.Reset() // it cancels without a reason
		}
	case read.Unmarshal(data, c) != nil:
		return &historyv1.TaskCommand{}, `the argument of the signal is neither a reason nor {"reason": "..."}`
	case c.GetTask() != "":
		return c, "signals cannot cancel a task; use `switchyard runs cancel RUN TASK`"
	}
	return c, ""
}

// save hands over to the next execution who has cancelled the run, and which updates the run has carried out.
func (cs *commands) save(c *historyv1.RunState) {
	c.CancelledBy, c.CarriedOut = cs.canceller, cs.carriedOut
}

// restore continues a cancellation.
func (cs *commands) restore(c *historyv1.RunState) {
	cs.canceller, cs.cancelled = c.GetCancelledBy(), cs.core.Cancelled()
}

// cancelledBy returns who has cancelled the run, or "" if that is unknown.
func (cs *commands) cancelledBy() string { return cs.canceller }
