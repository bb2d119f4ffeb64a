package fanout

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/structs"
)

// An update of the context counts only if the context of the run stays within its size limit; otherwise the attempt fails. A
// partition does not have the context of its run, which other partitions update too. So an instance of a partition that updates
// the context ends only when the run has answered:
//
//	attempt ends ──> asked ── report ──> the run merges, in order ── answer ──> settled
//
// Neither side continues as new before the answers have arrived.

// updateCharge is the size of a context update in a report, without its fields.
const updateCharge = 64

// ask is a context update of a partition that the run has not answered yet.
type ask struct {
	*historyv1.ContextUpdate
	sent bool
}

// Context returns the context of the run, which is never modified.
func (s *State) Context() *structpb.Struct { return s.context }

// Update adds a task's update to the context of the run. It returns the number under which Settle gives the answer: in a partition
// when the run has answered, otherwise at once.
func (s *State) Update(update *structpb.Struct, now time.Time) (number int64, effects []Effect) {
	if s.Input.GetPartition() == nil || len(update.GetFields()) == 0 {
		s.do(Settle{Refusal: s.merge(update)[0]})
		return 0, s.take()
	}
	s.asked = max(s.asked+1, now.UnixMicro()) // numbers also increase from one execution to the next
	s.asks = append(s.asks, &ask{ContextUpdate: &historyv1.ContextUpdate{Number: s.asked, Update: update}})
	return s.asked, nil
}

// AwaitsAnswers reports whether the run still has to answer context updates of this partition.
func (s *State) AwaitsAnswers() bool { return len(s.asks) > 0 }

// hasUnsent reports whether a context update has not been sent to the run yet.
func (s *State) hasUnsent() bool { return len(s.asks) > 0 && !s.asks[len(s.asks)-1].sent }

// takeUnsent marks the next context updates as sent and returns them, as many as fit in a report.
func (s *State) takeUnsent() (updates []*historyv1.ContextUpdate, bytes int) {
	for _, a := range s.asks {
		if a.sent {
			continue
		}
		size := structs.Bytes(a.GetUpdate()) + updateCharge
		if len(updates) > 0 && bytes+size > definition.MaxContextBytes {
			break
		}
		a.sent = true
		updates, bytes = append(updates, a.ContextUpdate), bytes+size
	}
	return updates, bytes
}

// Answered settles the context updates that the run has answered.
func (s *State) Answered(answer *historyv1.ContextAnswer) []Effect {
	s.settle(answer.GetVerdicts())
	return s.take()
}

// settle settles context updates. The merged ones are visible to later instances of the partition if the context has room for
// them.
func (s *State) settle(verdicts []*historyv1.ContextVerdict) {
	var merged []*structpb.Struct
	for _, v := range verdicts {
		k := slices.IndexFunc(s.asks, func(a *ask) bool { return a.GetNumber() == v.GetNumber() })
		if k < 0 {
			continue // already answered before a reset
		}
		a := s.asks[k]
		s.asks = slices.Delete(s.asks, k, k+1)
		if v.GetRefusal() == "" {
			merged = append(merged, a.GetUpdate())
		}
		s.do(Settle{Ask: a.GetNumber(), Refusal: v.GetRefusal()})
	}
	s.merge(merged...)
	s.do(Wake{})
}

// merge adds updates of tasks to the context of the run, in order, and returns the reason for each refusal, or "". The
// newest value of a key wins.
func (s *State) merge(updates ...*structpb.Struct) []string {
	refusals := make([]string, len(updates))
	var merged *structpb.Struct
	for k, update := range updates {
		if len(update.GetFields()) == 0 {
			continue
		}
		if merged == nil {
			merged = proto.CloneOf(s.context)
		}
		if size := setFields(merged, update); size > definition.MaxContextBytes {
			refusals[k] = fmt.Sprintf("the context would grow to %d bytes; the limit is %d", size, definition.MaxContextBytes)
		}
	}
	if merged != nil {
		s.context = merged
		s.do(ShowContext{Context: merged})
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
