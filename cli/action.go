package cli

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "switchyard/proto/switchyard/v1"
)

// action is a command that has the gateway do one thing to a run, or to a task of it.
type action struct {
	use, short, long string
	// most is how many arguments there may be, RUN and TASK; least how many there must.
	least, most int
	reason      bool // it takes --reason
	// flags adds more of them; nil: there are none.
	flags func(*pflag.FlagSet)
	// ask asks for it and returns the id of the run; task is empty where none is named.
	ask func(ctx context.Context, a *api, run, task, reason string) (id string, err error)
	// said is what has been done, and remedy what to do when an open run refuses
	// it, with the run and task as they were named.
	said, remedy func(run, task string) string
}

func (c action) command(sys *system) *cobra.Command {
	what := "RUN"
	if c.least > 1 {
		what = "RUN TASK"
	}
	cmd := &cobra.Command{Use: c.use, Short: c.short, Long: c.long, Args: arguments(c.least, c.most, what)}
	reason := ""
	if c.reason {
		cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	}
	if c.flags != nil {
		c.flags(cmd.Flags())
	}
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		run, err := sys.ownRun(a.url, args[0])
		if err != nil {
			return err
		}
		task := ""
		if len(args) > 1 {
			task = args[1]
		}
		id, err := c.ask(ctx, a, run, task, reason)
		if err != nil {
			return withRemedy(err, func() string {
				if a.hasEnded(ctx, run) {
					return fmt.Sprintf("the run has ended: `switchyard runs get %[1]s` shows how, `switchyard runs retry %[1]s` goes on with it", run)
				}
				return c.remedy(run, task)
			})
		}
		if output.value == formatJSON {
			return writeJSON(sys.stdout, map[string]string{"id": id})
		}
		_, err = fmt.Fprintln(sys.screen, c.said(id, task))
		return err
	})
	return cmd
}

// withRemedy adds what to do to an error that says that something is in a state
// that does not allow what was asked.
func withRemedy(err error, remedy func() string) error {
	if f, ok := errors.AsType[*failure](err); ok && f.code == exitNotDone && f.hint == "" && f.err != nil {
		f.hint = remedy()
	}
	return err
}

// hasEnded says whether a run is known to have ended.
func (a *api) hasEnded(ctx context.Context, id string) bool {
	page, err := call(ctx, a, a.calls.GetRun, &v1.GetRunRequest{Id: id, PageSize: 1})
	return err == nil && v1.IsRunTerminal(page.GetRun().GetState())
}

// answered returns the id that an answer tells.
func answered[Req, Res any, Answer interface {
	*Res
	GetId() string
}](ctx context.Context, a *api, method func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (string, error) {
	res, err := call(ctx, a, method, req)
	if err != nil {
		return "", err
	}
	return Answer(res).GetId(), nil
}
