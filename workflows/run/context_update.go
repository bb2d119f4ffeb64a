package run

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// An update of the context counts only if the context of the run stays within its size limit; otherwise the attempt fails. A
// partition does not have the context of its run, which other partitions update too. So an instance of a partition that updates
// the context ends only when the run has answered:
//
//	attempt ends ──> asked ── report ──> the run merges, in order ── signal `context` ──> settled
//
// Neither side continues as new before the answers have arrived.

// updateCharge is the size of a context update in a report, without its fields.
const updateCharge = 64

// contextAsk is a context update of a partition that the run has not answered yet.
type contextAsk struct {
	*v1.ContextUpdate
	sent   bool
	settle func(refusal string)
}

// addToContext adds a task's update to the context of the run and calls settle with the reason for a refusal, or "". In a
// partition, settle is called when the run has answered.
func (r *run) addToContext(update *structpb.Struct, settle func(refusal string)) {
	if r.in.GetPartition() == nil || len(update.GetFields()) == 0 {
		settle(r.mergeContext(update)[0])
		return
	}
	s := &r.reports
	s.number = max(s.number+1, workflow.Now(r.ctx).UnixMicro()) // numbers also increase from one execution to the next
	s.asks = append(s.asks, &contextAsk{ContextUpdate: &v1.ContextUpdate{Number: s.number, Update: update}, settle: settle})
	r.openEnds++
}

// hasUnsent reports whether a context update has not been sent to the run yet.
func (s *reports) hasUnsent() bool {
	return len(s.asks) > 0 && !s.asks[len(s.asks)-1].sent
}

// takeUnsent marks the next context updates as sent and returns them, as many as fit in a report.
func (s *reports) takeUnsent() (updates []*v1.ContextUpdate, bytes int) {
	for _, a := range s.asks {
		if a.sent {
			continue
		}
		size := structBytes(a.GetUpdate()) + updateCharge
		if len(updates) > 0 && bytes+size > definition.MaxContextBytes {
			break
		}
		a.sent = true
		updates, bytes = append(updates, a.ContextUpdate), bytes+size
	}
	return updates, bytes
}

// receiveAnswers settles the context updates that the run has answered.
func (r *run) receiveAnswers() {
	answers := workflow.GetSignalChannel(r.root, names.ContextSignal)
	for answers.Len() > 0 {
		var answer v1.ContextAnswer
		if answers.ReceiveAsync(&answer) {
			r.settleUpdates(answer.GetVerdicts())
		}
	}
}

// settleUpdates settles context updates. The merged ones are visible to later instances of the partition if the context has
// room for them.
func (r *run) settleUpdates(verdicts []*v1.ContextVerdict) {
	var merged []*structpb.Struct
	for _, v := range verdicts {
		k := slices.IndexFunc(r.reports.asks, func(a *contextAsk) bool { return a.GetNumber() == v.GetNumber() })
		if k < 0 {
			continue // already answered before a reset
		}
		a := r.reports.asks[k]
		r.reports.asks = slices.Delete(r.reports.asks, k, k+1)
		if v.GetRefusal() == "" {
			merged = append(merged, a.GetUpdate())
		}
		r.openEnds--
		a.settle(v.GetRefusal())
	}
	r.mergeContext(merged...)
	r.wake()
}

// loseRun ends a child workflow whose parent run has ended without it.
func (r *run) loseRun() {
	r.cancel("", runGone)
	var verdicts []*v1.ContextVerdict
	for _, a := range r.reports.asks {
		verdicts = append(verdicts, &v1.ContextVerdict{Number: a.GetNumber(), Refusal: "the run has ended, and its context with it"})
	}
	r.settleUpdates(verdicts)
}

// answerUpdates merges the context updates of a partition and reports the verdicts to it.
func (r *run) answerUpdates(p *v1.PartitionReport) {
	if len(p.GetContextUpdates()) == 0 {
		return
	}
	var updates []*structpb.Struct
	for _, u := range p.GetContextUpdates() {
		updates = append(updates, u.GetUpdate())
	}
	answer, written := &v1.ContextAnswer{}, 0
	for k, refusal := range r.mergeContext(updates...) {
		answer.Verdicts = append(answer.Verdicts, &v1.ContextVerdict{Number: p.GetContextUpdates()[k].GetNumber(), Refusal: refusal})
		written += updateCharge + len(refusal)
	}
	r.children.answers++
	r.pending.Watch(r.signal(r.partitionID(p), names.ContextSignal, answer, written), func(f workflow.Future) {
		r.children.answers--
		if err := f.Get(r.ctx, nil); err != nil {
			workflow.GetLogger(r.ctx).Debug("a part has ended without the answer for its context updates", "error", err)
		}
	})
	r.wake()
}

// mergeContext adds updates of tasks to the context of the run, in order, and returns the reason for each refusal, or "". The
// newest value of a key wins.
func (r *run) mergeContext(updates ...*structpb.Struct) []string {
	refusals := make([]string, len(updates))
	var merged *structpb.Struct
	for k, update := range updates {
		if len(update.GetFields()) == 0 {
			continue
		}
		if merged == nil {
			merged = proto.CloneOf(r.context)
		}
		if size := setFields(merged, update); size > definition.MaxContextBytes {
			refusals[k] = fmt.Sprintf("the context would grow to %d bytes; a run may have %d", size, definition.MaxContextBytes)
		}
	}
	if merged != nil {
		r.context = merged
		r.status.SetContext(merged)
	}
	return refusals
}

// setFields applies an update to a context and returns the resulting size. If the context would be too large, setFields leaves
// it unchanged.
func setFields(context, update *structpb.Struct) int {
	was := map[string]*structpb.Value{}
	if context.Fields == nil {
		context.Fields = map[string]*structpb.Value{}
	}
	//workflowcheck:ignore (into a map again)
	for key, value := range update.GetFields() {
		if old, ok := context.Fields[key]; ok {
			was[key] = old
		}
		context.Fields[key] = value
	}
	size := proto.Size(context)
	if size <= definition.MaxContextBytes {
		return size
	}
	//workflowcheck:ignore (into a map again)
	for key := range update.GetFields() {
		if old, ok := was[key]; ok {
			context.Fields[key] = old
		} else {
			delete(context.Fields, key)
		}
	}
	return size
}
