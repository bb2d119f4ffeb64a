package run_test

import (
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// instances returns the states of a task's instances, in order.
func instances(task *v1.Task) string {
	var words []string
	for _, i := range task.GetInstances() {
		words = append(words, i.GetState())
	}
	return strings.Join(words, " ")
}

// valuesSeen returns the sorted values of an environment variable in the attempts of a task.
func valuesSeen(c *workertest.Nodes, task, variable string) []string {
	var values []string
	for _, call := range c.Fake.Calls() {
		if call.Task == task {
			values = append(values, call.Attempt.Env[variable])
		}
	}
	slices.Sort(values)
	return values
}

// inPartitions makes children carry fan-outs of more than 5 instances, 4 instances each.
var inPartitions = limits.Run{Instances: 5, PartitionInstances: 4}

// instancesPage queries a workflow for a page of instances.
func instancesPage(h *workertest.Handle, id string, req *historyv1.InstancesRequest) *historyv1.InstancesResponse {
	h.T.Helper()
	var res historyv1.InstancesResponse
	h.Query(id, names.InstancesQuery, req, &res)
	return &res
}
