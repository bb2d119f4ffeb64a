package runretry

import (
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// The fields of an agent's spec that new limits replace: SubagentSpec.max_turns and max_cost_usd.
const (
	maxTurnsField   = "maxTurns"
	maxCostUsdField = "maxCostUsd"
)

// checkAgentLimits returns an error unless every new limit is valid and names an agent task of the run.
func checkAgentLimits(v *runview.View, limits map[string]*v1.AgentLimits) error {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		task, l := v.Tasks[name], limits[name]
		cost := l.GetMaxCostUsd()
		switch {
		case task == nil:
			return v.NoTask(name)
		case task.Task.GetType() != v1.TypeSubagent:
			return rpcerror.Invalid("task %s of run %s has type %s; only tasks of type %s have limits on turns and cost", name, v.Run.GetId(), task.Task.GetType(), v1.TypeSubagent)
		case l.GetMaxTurns() < 0 || cost < 0 || math.IsNaN(cost) || math.IsInf(cost, 0) || l.GetMaxTurns() == 0 && cost == 0:
			return rpcerror.Invalid("the new limit of task %s must be greater than 0", name)
		}
	}
	return nil
}

// withAgentLimits returns a copy of def with the limits of its agents replaced, or def itself if there are
// none to replace.
func withAgentLimits(def *v1.Definition, limits map[string]*v1.AgentLimits) *v1.Definition {
	if len(limits) == 0 {
		return def
	}
	def = proto.CloneOf(def)
	for name, l := range limits {
		task := v1.TaskNamed(def, name)
		if task == nil {
			continue // checkAgentLimits has validated the names
		}
		if task.Spec == nil {
			task.Spec = &structpb.Struct{}
		}
		if task.Spec.Fields == nil {
			task.Spec.Fields = map[string]*structpb.Value{}
		}
		if n := l.GetMaxTurns(); n > 0 {
			task.Spec.Fields[maxTurnsField] = structpb.NewNumberValue(float64(n))
		}
		if cost := l.GetMaxCostUsd(); cost > 0 {
			task.Spec.Fields[maxCostUsdField] = structpb.NewNumberValue(cost)
		}
	}
	return def
}
