package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsResume(sys *system) *cobra.Command {
	return action{
		use: "resume RUN", short: "Go on with a paused run", least: 1, most: 1,
		ask: func(ctx context.Context, a *api, run, _, _ string) (string, error) {
			return answered(ctx, a, a.calls.ResumeRun, &v1.ResumeRunRequest{Id: run})
		},
		said: func(run, _ string) string { return fmt.Sprintf("run %s goes on", run) },
		remedy: func(run, _ string) string {
			return fmt.Sprintf("only a paused run can be resumed; one that has ended goes on with `switchyard runs retry %s`", run)
		},
	}.command(sys)
}
