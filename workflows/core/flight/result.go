package flight

import (
	"cmp"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// ResultOf returns the result of an answer, never nil and never without an output.
func ResultOf(res *historyv1.ExecuteResponse) *v1.TaskResult {
	result := res.GetResult()
	if result == nil {
		return NothingRan
	}
	if result.Output == nil {
		result.Output = &structpb.Struct{}
	}
	return result
}

// Result returns the result of the newest ended attempt, never nil. If the result has a key, some of it is only in the store.
func (r Record) Result() *v1.TaskResult { return cmp.Or(r.result, NothingRan) }

// SetResult records the result of an answer, without the context update if the stored record holds it.
func (r *Record) SetResult(res *historyv1.ExecuteResponse) {
	r.result, r.ResultKey = ResultOf(res), res.GetRecord()
	if r.ResultKey != "" && r.result.GetContextUpdate() != nil {
		r.result = proto.CloneOf(r.result)
		r.result.ContextUpdate = nil
	}
}
