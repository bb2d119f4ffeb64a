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
		Short: "Log in to a vps, or to any task that runs",
		Long: `Runs a login shell in a vps, or in any task that runs, as runs exec -it does, with the
same escapes and exit codes; COMMAND is a line for that shell, as with ssh, and has a
terminal if standard input and output are one. TASK may be left out if only one runs.

It needs no SSH server and no key: the gateway knows who you are. Plain ssh, scp, sftp
and rsync reach the same tasks where the gateway has an --ssh-address.`,
		Example: `  switchyard ssh last
  switchyard ssh last box -L 8888:8888
  switchyard ssh last -- 'ls *.log | wc -l'`,
	}
	cmd.Flags().StringVarP(&user, "user", "u", "", "user to log in as, in a container or a vps (default that of its program)")
	cmd.Flags().StringSliceVarP(&ports, "local-forward", "L", nil, "port to bring here for as long as the session lasts, as runs port-forward takes it; may be repeated")
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
						p.report("no more ports: " + words.OneLine(err.Error()))
					}
				})
				return nil
			}
			return p.start(ctx, operands)
		})(cmd, args)
	}
	return cmd
}
