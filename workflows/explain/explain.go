package explain

import (
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// Explain asks the placement queue about a task. Only the leader runs it, as it does every run.
func Explain(ctx workflow.Context, req *historyv1.ExplainRequest) (*historyv1.ExplainResponse, error) {
	ctx = workflow.WithLocalActivityOptions(ctx, options.Try("explain"))
	var res historyv1.ExplainResponse
	if err := workflow.ExecuteLocalActivity(ctx, names.ExplainActivity, req).Get(ctx, &res); err != nil {
		return nil, err
	}
	return &res, nil
}
