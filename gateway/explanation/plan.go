package explanation

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/submission"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// Runs checks requests. It is safe for concurrent use.
type Runs interface {
	// Prepare checks a request and returns the input of its run and the warnings about its definition.
	Prepare(ctx context.Context, req *v1.SubmitRunRequest) (*historyv1.RunInput, source.Problems, error)
}

// planner describes what runs would do.
type planner struct {
	runs  Runs
	queue queue
	now   func() time.Time
}

// PlanRun describes what a run of a definition would do, without starting anything.
func (p planner) PlanRun(ctx context.Context, req *connect.Request[v1.PlanRunRequest]) (*connect.Response[v1.PlanRunResponse], error) {
	in, warnings, err := p.runs.Prepare(ctx, req.Msg.GetSubmit())
	if err != nil {
		return nil, err
	}
	if _, err := submission.Pack(in); err != nil {
		return nil, err
	}
	def := in.GetDefinition()
	res := &v1.PlanRunResponse{Name: def.GetName(), Input: in.GetInput(), Warnings: warnings}
	levels, deepest := map[string]int32{}, int32(0) // of the tasks outside of finally
	for _, name := range definition.Order(def) {
		task := v1.TaskNamed(def, name)
		if v1.IsInFinally(def, name) {
			levels[name] = deepest + 1
		}
		for _, parent := range task.GetDependsOn() {
			levels[name] = max(levels[name], levels[parent]+1)
		}
		if !v1.IsInFinally(def, name) {
			deepest = max(deepest, levels[name])
		}
		res.Tasks = append(res.Tasks, &v1.PlannedTask{
			Task: name, Type: task.GetType(), Level: levels[name], DependsOn: task.GetDependsOn(),
			StartsWhen: startsWhen(task, in.GetReferences()[name].GetTasks(), v1.IsInFinally(def, name)), Instances: plannedInstances(task),
		})
	}
	if err := p.planPlacement(ctx, in, res.Tasks); err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}
