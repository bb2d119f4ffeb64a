package web

import (
	"context"
	"net/url"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// workflowActions are the actions on stored workflows. Their field workflow is the name of the workflow.
var workflowActions = []actionKind{
	{
		verb: "delete-workflow", label: "Delete", call: workflowService + "DeleteWorkflow",
		asks: "Delete the stored workflow %s and its schedule? Its runs stay.",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.workflows.DeleteWorkflow(ctx, connect.NewRequest(&v1.DeleteWorkflowRequest{Name: form.Get("workflow")}))
			return "Workflow " + form.Get("workflow") + " is deleted.", "/ui/workflows", err
		},
	},
}
