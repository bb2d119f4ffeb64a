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

// contexts owns the updates of the run's context: it merges those of the run's tasks, and in a partition it keeps those that
// the run has not answered yet.
type contexts struct {
	*execution

	asks   []*contextAsk // in ascending order of their numbers
	number int64         // number of the newest ask
}

// A contextUpdater adds a task's update to the context of the run and passes the reason for a refusal, or "", to settle.
type contextUpdater interface {
	add(update *structpb.Struct, settle func(refusal string))
}

// contextAsk is a context update of a partition that the run has not answered yet.
type contextAsk struct {
	*v1.ContextUpdate
	sent   bool
	settle func(refusal string)
}

// add adds a task's update to the context of the run and calls settle with the reason for a refusal, or "". In a
// partition, settle is called when the run has answered.
func (cx *contexts) add(update *structpb.Struct, settle func(refusal string)) {
	if cx.in.GetPartition() == nil || len(update.GetFields()) == 0 {
		settle(cx.merge(update)[0])
		return
	}
	cx.number = max(cx.number+1, cx.now().UnixMicro()) // numbers also increase from one execution to the next
	cx.asks = append(cx.asks, &contextAsk{ContextUpdate: &v1.ContextUpdate{Number: cx.number, Update: update}, settle: settle})
}

// awaitsAnswers reports whether the run still has to answer context updates of this partition.
func (cx *contexts) awaitsAnswers() bool { return len(cx.asks) > 0 }

// hasUnsent reports whether a context update has not been sent to the run yet.
func (cx *contexts) hasUnsent() bool {
	return len(cx.asks) > 0 && !cx.asks[len(cx.asks)-1].sent
}

// takeUnsent marks the next context updates as sent and returns them, as many as fit in a report.
func (cx *contexts) takeUnsent() (updates []*v1.ContextUpdate, bytes int) {
	for _, a := range cx.asks {
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
func (cx *contexts) receiveAnswers() {
	answers := workflow.GetSignalChannel(cx.root, names.ContextSignal)
	for answers.Len() > 0 {
		var answer v1.ContextAnswer
		if cx.receiveSignal(answers, &answer) {
			cx.settle(answer.GetVerdicts())
		}
	}
}

// settle settles context updates. The merged ones are visible to later instances of the partition if the context has
// room for them.
func (cx *contexts) settle(verdicts []*v1.ContextVerdict) {
	var merged []*structpb.Struct
	for _, v := range verdicts {
		k := slices.IndexFunc(cx.asks, func(a *contextAsk) bool { return a.GetNumber() == v.GetNumber() })
		if k < 0 {
			continue // already answered before a reset
		}
		a := cx.asks[k]
		cx.asks = slices.Delete(cx.asks, k, k+1)
		if v.GetRefusal() == "" {
			merged = append(merged, a.GetUpdate())
		}
		a.settle(v.GetRefusal())
	}
	cx.merge(merged...)
	cx.wake()
}

// refuseAll refuses all context updates that the run has not answered.
func (cx *contexts) refuseAll(why string) {
	var verdicts []*v1.ContextVerdict
	for _, a := range cx.asks {
		verdicts = append(verdicts, &v1.ContextVerdict{Number: a.GetNumber(), Refusal: why})
	}
	cx.settle(verdicts)
}

// merge adds updates of tasks to the context of the run, in order, and returns the reason for each refusal, or "". The
// newest value of a key wins.
func (cx *contexts) merge(updates ...*structpb.Struct) []string {
	refusals := make([]string, len(updates))
	var merged *structpb.Struct
	for k, update := range updates {
		if len(update.GetFields()) == 0 {
			continue
		}
		if merged == nil {
			merged = proto.CloneOf(cx.context)
		}
		if size := setFields(merged, update); size > definition.MaxContextBytes {
			refusals[k] = fmt.Sprintf("the context would grow to %d bytes; the limit is %d", size, definition.MaxContextBytes)
		}
	}
	if merged != nil {
		cx.context = merged
		cx.status.SetContext(merged)
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
