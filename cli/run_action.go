package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
)

// runAction describes a command that changes a run or a task of a run.
type runAction struct {
	use, short, long string
	// most is the most arguments, RUN and TASK; least is the fewest.
	least, most int
	reason      bool // adds --reason
	// flags adds more flags. It may be nil.
	flags func(*pflag.FlagSet)
	// send sends the request and returns the ID of the run. task is "" if the user names none.
	send func(ctx context.Context, a *client.Client, run, task, reason string) (id string, err error)
	// done describes the completed change, and remedy what the user can do if an open run refuses it. Both receive the
	// run and the task as the user named them.
	done, remedy func(run, task string) string
	// document returns more members of the JSON document. It may be nil.
	document func() map[string]any
}

func (c runAction) command(sys *system) *cobra.Command {
	what := "RUN"
	if c.least > 1 {
		what = "RUN TASK"
	}
	cmd := &cobra.Command{Use: c.use, Short: c.short, Long: c.long, Args: arguments(c.least, c.most, what)}
	reason := ""
	if c.reason {
		cmd.Flags().StringVar(&reason, "reason", "", "reason to show with the change")
	}
	if c.flags != nil {
		c.flags(cmd.Flags())
	}
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		run, err := sys.resolveRun(ctx, a, args[0])
		if err != nil {
			return err
		}
		task := ""
		if len(args) > 1 {
			task = args[1]
		}
		id, err := c.send(ctx, a, run, task, reason)
		if err != nil {
			return withRemedy(err, func() string {
				if a.HasEnded(ctx, run) {
					return fmt.Sprintf("the run has ended: `switchyard runs get %[1]s` shows how, `switchyard runs retry %[1]s` continues it", run)
				}
				return c.remedy(run, task)
			})
		}
		if format.Value == output.JSON {
			document := map[string]any{"id": id}
			if c.document != nil {
				maps.Copy(document, c.document())
			}
			return output.WriteJSON(sys.stdout, document)
		}
		_, err = fmt.Fprintln(sys.screen, c.done(id, task))
		return err
	})
	return cmd
}

// withRemedy adds a hint to an error that means that the state does not allow the request.
func withRemedy(err error, remedy func() string) error {
	if f, ok := errors.AsType[*exit.Error](err); ok && f.Code == exit.CodeNotDone && f.Hint == "" && f.Err != nil {
		f.Hint = remedy()
	}
	return err
}

// withKeyRemedy adds a hint to an error that means that the idempotency key belongs to another request.
func withKeyRemedy(err error, key, remedy string) error {
	if key == "" {
		return err
	}
	return withRemedy(err, func() string { return remedy })
}

// idOf calls a method and returns the ID in its reply.
func idOf[Req, Res any, Answer interface {
	*Res
	GetId() string
}](ctx context.Context, a *client.Client, method func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (string, error) {
	res, err := client.Call(ctx, a, method, req)
	if err != nil {
		return "", err
	}
	return Answer(res).GetId(), nil
}
