package definition

import (
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// MaxGang is the largest number of members of a gang.
const MaxGang = 256

// setGangCounts makes each task with a gang fan out into its members.
func setGangCounts(def *v1.Definition) {
	for _, name := range v1.TaskNames(def) {
		task := v1.TaskNamed(def, name)
		if size := task.GetGang().GetSize(); size > 0 && task.GetParallel() == nil && task.GetForeach() == nil {
			task.Parallel = structpb.NewNumberValue(float64(size))
		}
	}
}

// GangRequest returns the part about its gang of a placement request for a task, or nil if the task has none.
func GangRequest(name string, task *v1.TaskDefinition) *historyv1.GangRequest {
	gang := task.GetGang()
	if gang == nil {
		return nil
	}
	return &historyv1.GangRequest{Task: name, Size: gang.GetSize(), PerNode: gang.GetPerNode()}
}

// gangRules checks the gangs of tasks.
type gangRules struct{ *decoder }

// check checks that a task with a gang has no field that would let some members run without the others.
func (r gangRules) check(task *v1.TaskDefinition, at *source.Path) {
	gang, p := task.GetGang(), at.Field("gang")
	if gang == nil {
		return
	}
	if gang.GetSize() < 1 || gang.GetSize() > MaxGang {
		return // reported already
	}
	if task.GetForeach() != nil || task.GetParallel().GetNumberValue() != float64(gang.GetSize()) {
		r.Add(r.locateKey(p), p, "gang, parallel, foreach and matrix are mutually exclusive", "gang.size is the number of instances")
		return
	}
	for _, field := range []struct {
		name    string
		isGiven bool
		hint    string
	}{
		{"batch", task.GetBatch() != nil, "leave it out: each member has a place of its own"},
		{"concurrency", task.GetConcurrency() != 0, "leave it out: all members run at the same time"},
		{"maxFailures", task.GetMaxFailures() != 0, "leave it out: a gang fails with its first member"},
		{"cache", task.GetCache() != nil, "put what can be reused into a task of its own"},
		{"mutex", task.GetMutex() != "", "let a task before it and one after it take and give back what only one may use"},
		{"semaphore", task.GetSemaphore() != nil, "let a task before it and one after it take and give back what only few may use"},
		{"workspace", task.GetWorkspace() != "", "pass files as artifacts: a workspace is a folder of one node"},
	} {
		if f := at.Field(field.name); field.isGiven {
			r.Add(r.locateKey(f), f, field.name+" cannot be combined with gang: its members start and end together", field.hint)
		}
	}
	if when := at.Field("retry").Field("when"); task.GetRetry().GetWhen() != "" {
		r.Add(r.locateKey(when), when, "retry.when cannot be combined with gang: its members are retried together", "leave it out: exit codes in retry are not known for all members")
	}
}
