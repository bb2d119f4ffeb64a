package run

import (
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// handleQueries registers the handlers of all queries.
func (r *run) handleQueries() error {
	if err := workflow.SetQueryHandler(r.root, names.StatusQuery, r.answerStatus); err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(r.root, names.EventsQuery, r.answerEvents); err != nil {
		return err
	}
	return workflow.SetQueryHandler(r.root, names.InstancesQuery, r.answerInstances)
}

func (r *run) answerStatus(req *historyv1.StatusRequest) (*historyv1.StatusResponse, error) {
	if r.status == nil {
		return r.notBegun()
	}
	res, err := r.status.Answer(req)
	if err != nil {
		return res, err
	}
	res.Chain = r.selfChain
	if req.GetSince() == 0 {
		res.Partitions = r.fanOuts.Reports()
	}
	return res, nil
}

func (r *run) answerEvents(req *historyv1.EventsRequest) (*historyv1.EventsResponse, error) {
	if r.log == nil {
		return nil, errNotBegun
	}
	return r.log.Answer(req)
}

func (r *run) answerInstances(req *historyv1.InstancesRequest) (*historyv1.InstancesResponse, error) {
	if r.status == nil {
		return nil, errNotBegun
	}
	if child, open := r.fanOuts.ChildOf(req); child != "" {
		i, _ := r.graph.Index(req.GetTask())
		return &historyv1.InstancesResponse{Next: req.GetFrom(), Child: child, Open: open, Items: r.records.ItemsOf(i, r.graph.Definition(i))}, nil
	}
	return r.status.Instances(req)
}

// notBegun returns the status of a run that still waits for its input.
func (r *run) notBegun() (*historyv1.StatusResponse, error) {
	if r.calls.Problem() == "" {
		return nil, errNotBegun
	}
	return &historyv1.StatusResponse{Chain: r.selfChain, Run: &v1.Run{
		Id: r.Self, Name: r.wanted.Workflow, State: v1.RunPending, Generation: r.Input.GetGeneration(), Problem: r.calls.Problem(),
	}}, nil
}
