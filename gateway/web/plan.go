package web

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// planView shows the plan of a run.
type planView struct {
	*v1.PlanRunResponse
	Rows []plannedRow
	// Input is the input with its defaults as JSON, or "".
	Input string
}

// plannedRow is a task of a plan.
type plannedRow struct{ *v1.PlannedTask }

// Refusals returns the nodes that could not take the task now, each with its reasons.
func (r plannedRow) Refusals() (refusals []string) {
	for _, n := range r.GetNodes() {
		if !n.GetFeasible() {
			refusals = append(refusals, n.GetName()+": "+strings.Join(n.GetReasons(), "; "))
		}
	}
	return refusals
}

// Takers returns the nodes that could take the task now.
func (r plannedRow) Takers() (names []string) {
	for _, n := range r.GetNodes() {
		if n.GetFeasible() {
			names = append(names, n.GetName())
		}
	}
	return names
}

func newPlanView(plan *v1.PlanRunResponse) *planView {
	view := &planView{PlanRunResponse: plan}
	for _, t := range plan.GetTasks() {
		view.Rows = append(view.Rows, plannedRow{t})
	}
	if len(plan.GetInput().GetFields()) > 0 {
		view.Input = fieldText(structpb.NewStructValue(plan.GetInput()), "object")
	}
	return view
}
