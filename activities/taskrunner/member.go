package taskrunner

import (
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// member is what one process runs: a task, or an instance of a fanned-out task, alone or as part of a batch.
type member struct {
	// name is the name of the task or of the instance, such as "each[3]".
	name string
	// index is the number of the instance, or -1 for a task.
	index          int32
	attempt, claim int32
	unacknowledged []int32
	left           []string // keys of records that attempts of earlier generations may have left
	item           *structpb.Value
	checkpoint     *historyv1.Checkpoint
}

// membersOf returns the members of a request in its order.
func membersOf(req *historyv1.ExecuteRequest) []member {
	if len(req.GetBatch()) == 0 {
		m := member{
			name: req.GetTask(), index: -1, attempt: req.GetAttempt(), claim: req.GetClaim(),
			unacknowledged: req.GetUnacknowledged(), left: req.GetLeftRecords(), item: req.GetItem(), checkpoint: req.GetCheckpoint(),
		}
		if req.Index != nil {
			m.index = req.GetIndex()
			m.name = names.InstanceName(req.GetTask(), int(m.index))
		}
		return []member{m}
	}
	members := make([]member, len(req.GetBatch()))
	for i, m := range req.GetBatch() {
		members[i] = member{
			name: names.InstanceName(req.GetTask(), int(m.GetIndex())), index: m.GetIndex(), attempt: m.GetAttempt(), claim: m.GetClaim(),
			unacknowledged: m.GetUnacknowledged(), left: m.GetLeftRecords(), item: m.GetItem(), checkpoint: m.GetCheckpoint(),
		}
	}
	return members
}
