package web

import (
	"switchyard/gateway/inprocess"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// services are the service clients of the page.
type services struct {
	runs      switchyardv1connect.RunServiceClient
	tasks     switchyardv1connect.TaskServiceClient
	workflows switchyardv1connect.WorkflowServiceClient
	schedules switchyardv1connect.ScheduleServiceClient
	nodes     switchyardv1connect.NodeServiceClient
}

func newServices(c inprocess.Client) services {
	return services{
		runs:      switchyardv1connect.NewRunServiceClient(c, inprocess.URL),
		tasks:     switchyardv1connect.NewTaskServiceClient(c, inprocess.URL),
		workflows: switchyardv1connect.NewWorkflowServiceClient(c, inprocess.URL),
		schedules: switchyardv1connect.NewScheduleServiceClient(c, inprocess.URL),
		nodes:     switchyardv1connect.NewNodeServiceClient(c, inprocess.URL),
	}
}
