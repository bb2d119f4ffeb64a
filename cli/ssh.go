package cli

import (
	"context"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"switchyard/activities/executor"
	"switchyard/cli/client"
	"switchyard/cli/terminal"
	"switchyard/drawing/words"
)

func newSSH(sys *system) *cobra.Command {
	var user string
	var ports []string
	cmd := &cobra.Command{
		Use:   "ssh RUN [TASK] [-- COMMAND...]",
		Short: "Log in to a vps or any other running task",
		Long: `Runs a login shell in a vps or any other running task, as runs exec -it does, with the
same escapes and exit codes. COMMAND is passed to that shell, as with ssh, and has a
terminal if standard input and output are one. TASK may be omitted if only one task is
running.

No SSH server and no key are needed: your login at the gateway is enough. Plain ssh, scp,
sftp and rsync reach the same tasks if the gateway has an --ssh-address.`,
		Example: `  switchyard ssh last
  switchyard ssh last box -L 8888:8888
  switchyard ssh last -- 'ls *.log | wc -l'`,
	}
	cmd.Flags().StringVarP(&user, "user", "u", "", "user to log in as, in a container or a vps (default the user of its program)")
	cmd.Flags().StringSliceVarP(&ports, "local-forward", "L", nil, "port to forward during the session, in the form of runs port-forward; may be repeated")
	clientFlag(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		operands, _ := splitCommand(cmd, args)
		return targetArguments(operands)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		operands, line := splitCommand(cmd, args)
		return onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
			p := &programSession{sys: sys, client: a, interactive: true, command: executor.Command{Line: strings.Join(line, " "), User: user}}
			if terminal.IsTerminal(sys.stdin) && (len(line) == 0 || terminal.IsTerminal(sys.rawStdout)) {
				if err := p.useTerminal(); err != nil {
					return err
				}
			}
			specs, err := parseSpecs(ports)
			if err != nil {
				return err
			}
			if len(specs) == 0 {
				return p.start(ctx, operands)
			}
			forwarding, stop := context.WithCancel(ctx)
			var served sync.WaitGroup
			defer served.Wait()
			defer stop()
			p.started = func() error {
				g := &portGroup{target: p.target, out: sys.screen, report: p.report}
				if err := g.listen(forwarding, specs); err != nil {
					return err
				}
				served.Go(func() {
					if err := g.serve(forwarding); forwarding.Err() == nil {
						p.report("ports are no longer forwarded: " + words.OneLine(err.Error()))
					}
				})
				return nil
			}
			return p.start(ctx, operands)
		})(cmd, args)
	}
	return cmd
}
