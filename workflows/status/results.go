package status

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
)

// ResultOf returns the result of an answer, never nil and never without an output.
func ResultOf(res *v1.ExecuteResponse) *v1.TaskResult {
	result := res.GetResult()
	if result == nil {
		return flight.NothingRan
	}
	if result.Output == nil {
		result.Output = &structpb.Struct{}
	}
	return result
}

// shownResult returns the result of an answer without the context update if the record holds it.
func shownResult(res *v1.ExecuteResponse) *v1.TaskResult {
	result := ResultOf(res)
	if res.GetRecord() == "" || result.GetContextUpdate() == nil {
		return result
	}
	result = proto.CloneOf(result)
	result.ContextUpdate = nil
	return result
}
