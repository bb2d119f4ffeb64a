package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsPause(sys *system) *cobra.Command {
	return action{
		use: "pause RUN", short: "Let nothing new start in a run; what runs goes on", least: 1, most: 1, reason: true,
		ask: func(ctx context.Context, a *api, run, _, reason string) (string, error) {
			return answered(ctx, a, a.calls.PauseRun, &v1.PauseRunRequest{Id: run, Reason: reason})
		},
		said: func(run, _ string) string {
			return fmt.Sprintf("run %s is paused; `switchyard runs resume %s` goes on with it", run, run)
		},
		remedy: func(run, _ string) string {
			return fmt.Sprintf("only a run that goes on can be paused; `switchyard runs get %s` shows how it stands", run)
		},
	}.command(sys)
}
