package dataflow

import (
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/structs"
)

// MemberCharge covers one instance of a batch or one ancestor in a request, without text written by users.
const MemberCharge = 256

// Written returns how many bytes of a request users have written, measured as JSON.
func Written(req *historyv1.ExecuteRequest) int {
	n := structs.Bytes(req.GetSpec()) + structs.Bytes(req.GetInput()) + structs.ValueBytes(req.GetItem()) +
		structs.Bytes(req.GetContext().GetValue()) + structs.Bytes(req.GetRunInput().GetValue()) + checkpointBytes(req.GetCheckpoint())
	//workflowcheck:ignore (a sum does not depend on the order)
	for name, value := range req.GetEnv() {
		n += structs.TextBytes(name) + structs.TextBytes(value)
	}
	//workflowcheck:ignore (a sum does not depend on the order)
	for name, reference := range req.GetSecretEnv() {
		n += structs.TextBytes(name) + structs.TextBytes(reference)
	}
	n += writtenByAncestors(req)
	for _, m := range req.GetBatch() {
		n += MemberCharge + structs.ValueBytes(m.GetItem()) + checkpointBytes(m.GetCheckpoint())
	}
	for _, notice := range req.GetNotices() {
		n += structs.TextBytes(notice)
	}
	return n
}

// writtenByAncestors returns how many bytes of a request come from the task's ancestors.
func writtenByAncestors(req *historyv1.ExecuteRequest) int {
	n := 0
	for _, p := range req.GetParents() {
		n += MemberCharge + structs.Bytes(p.GetOutput())
	}
	//workflowcheck:ignore (a sum does not depend on the order)
	for _, view := range req.GetViews() {
		n += MemberCharge + ResultBytes(view.GetResult())
	}
	for _, name := range req.GetEnds().GetCompleted() {
		n += structs.TextBytes(name)
	}
	for _, end := range req.GetEnds().GetOthers() {
		n += MemberCharge + structs.TextBytes(end.GetTask()) + structs.TextBytes(end.GetError()) + structs.ValueBytes(structpb.NewListValue(end.GetFanOut().GetItems().GetList()))
	}
	return n
}

func checkpointBytes(c *historyv1.Checkpoint) int { return 2 * len(c.GetData()) } // base64

// ResultBytes returns how many bytes of a result users have written.
func ResultBytes(res *v1.TaskResult) int {
	return structs.TextBytes(res.GetStdout()) + structs.TextBytes(res.GetStderr()) + structs.Bytes(res.GetOutput())
}
