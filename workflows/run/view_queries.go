package run

import (
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// handleQueries registers the handlers of all queries.
func (v *view) handleQueries() error {
	if err := workflow.SetQueryHandler(v.root, names.StatusQuery, v.answerStatus); err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(v.root, names.EventsQuery, v.answerEvents); err != nil {
		return err
	}
	return workflow.SetQueryHandler(v.root, names.InstancesQuery, v.answerInstances)
}

func (v *view) answerStatus(req *historyv1.StatusRequest) (*historyv1.StatusResponse, error) {
	if v.status == nil {
		return v.notBegun()
	}
	res, err := v.status.Answer(req)
	if err != nil {
		return res, err
	}
	res.Chain = v.selfChain
	if req.GetSince() == 0 {
		res.Partitions = v.fanOuts.Reports()
	}
	return res, nil
}

func (v *view) answerEvents(req *historyv1.EventsRequest) (*historyv1.EventsResponse, error) {
	if v.log == nil {
		return nil, errNotBegun
	}
	return v.log.Answer(req)
}

func (v *view) answerInstances(req *historyv1.InstancesRequest) (*historyv1.InstancesResponse, error) {
	if v.status == nil {
		return nil, errNotBegun
	}
	if child, open := v.fanOuts.ChildOf(req); child != "" {
		i, _ := v.graph.Index(req.GetTask())
		return &historyv1.InstancesResponse{Next: req.GetFrom(), Child: child, Open: open, Items: v.records.ItemsOf(i, v.graph.Definition(i))}, nil
	}
	return v.status.Instances(req)
}

// notBegun returns the status of a run that still waits for its input.
func (v *view) notBegun() (*historyv1.StatusResponse, error) {
	if v.store.shownProblem() == "" {
		return nil, errNotBegun
	}
	return &historyv1.StatusResponse{Chain: v.selfChain, Run: &v1.Run{
		Id: v.self, Name: v.wanted.Workflow, State: v1.RunPending, Generation: v.in.GetGeneration(), Problem: v.store.shownProblem(),
	}}, nil
}
