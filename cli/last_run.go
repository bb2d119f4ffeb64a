package cli

import (
	"context"
	"fmt"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

// lastRun is the word that stands for the run that this user submitted last to the gateway.
const lastRun = "last"

// resolveRun returns the run that a command shows or changes. The gateway resolves "last", and the user sees the result, because
// not all output names the run.
func (s *system) resolveRun(ctx context.Context, a *client.Client, typed string) (string, error) {
	if typed != lastRun {
		return typed, nil
	}
	page, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: typed, PageSize: 1, Brief: true})
	if err != nil {
		return "", err
	}
	fmt.Fprintf(s.screen, "the last run is %s\n", page.GetRun().GetId())
	return page.GetRun().GetId(), nil
}
