package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/activities/executor"
	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/terminal"
)

// execFlags holds the flags of `runs exec`.
type execFlags struct {
	interactive, tty bool
	user, workdir    string
	env              []string
}

func newRunsExec(sys *system) *cobra.Command {
	f := &execFlags{}
	cmd := &cobra.Command{
		Use:   "exec RUN [TASK] [-- COMMAND...]",
		Short: "Run a program or a shell inside a running task",
		Long: `Runs a program beside the task's own program, with the same user, files, environment and
network. Without COMMAND it runs the user's login shell, with a terminal if standard
input is one. TASK may be omitted if only one task is running.

The flags are those of docker exec. With -t, Ctrl-C and all other keys go to the program;
at the start of a line, ~. leaves the session at once, even if its connection is lost, and
~? shows help. Without -t, SIGINT and SIGTERM go to the program, and the third Ctrl-C
leaves the session. The node sends SIGHUP to a program whose session was left.

The exit code is that of the program, 128 plus the number of the signal that ended it,
or 255 if the session was left or its connection was lost.`,
		Example: `  switchyard runs exec last train
  switchyard runs exec last train -- nvidia-smi
  switchyard runs exec last train -i -- sh -c 'cat > weights' < weights`,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.interactive, "interactive", "i", false, "pass standard input to the program")
	flags.BoolVarP(&f.tty, "tty", "t", false, "give the program a terminal")
	flags.StringVarP(&f.user, "user", "u", "", "user to run as, in a container or a vps (default the user of its program)")
	flags.StringVarP(&f.workdir, "workdir", "w", "", "folder to run in (default the folder of the task's program)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "environment variable as NAME=VALUE, or NAME to pass its local value; may be repeated")
	clientFlag(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		operands, _ := splitCommand(cmd, args)
		return targetArguments(operands)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		operands, command := splitCommand(cmd, args)
		return onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
			return f.run(ctx, sys, a, operands, command)
		})(cmd, args)
	}
	return cmd
}

// splitCommand returns the arguments before and after "--".
func splitCommand(cmd *cobra.Command, args []string) (operands, command []string) {
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		return args[:at], args[at:]
	}
	return args, nil
}

// targetArguments checks the arguments RUN [TASK] that precede a command.
func targetArguments(operands []string) error {
	if len(operands) > 2 {
		return exit.Usagef("unexpected argument %q; a command follows `--`", operands[2])
	}
	return arguments(1, 2, "RUN")(nil, operands)
}

func (f *execFlags) run(ctx context.Context, sys *system, a *client.Client, operands, command []string) error {
	env, err := parseEnv(f.env, sys.getenv)
	if err != nil {
		return err
	}
	p := &programSession{
		sys: sys, client: a, interactive: f.interactive,
		command: executor.Command{Args: command, Env: env, Dir: f.workdir, User: f.user},
	}
	tty := f.tty
	if len(command) == 0 {
		p.interactive, tty = true, tty || terminal.IsTerminal(sys.stdin)
	}
	if tty {
		if err := p.useTerminal(); err != nil {
			return err
		}
	}
	return p.start(ctx, operands)
}

// useTerminal gives the program a terminal like that of this process.
func (p *programSession) useTerminal() error {
	p.command.Terminal = &executor.Terminal{Type: terminalType(p.sys.getenv), Size: executor.WindowSize{Columns: 80, Rows: 24}}
	for _, stream := range []any{p.sys.stdin, p.sys.rawStdout} {
		if terminal.IsTerminal(stream) {
			p.terminal = stream.(*os.File)
			p.command.Terminal.Size = executor.WindowSize(terminal.SizeOf(p.terminal))
			break
		}
	}
	if p.interactive && !terminal.IsTerminal(p.sys.stdin) {
		return exit.Usagef("standard input is not a terminal; leave out -t or -i")
	}
	return nil
}

// start runs the program in the target that the arguments name.
func (p *programSession) start(ctx context.Context, operands []string) error {
	sessions := p.client.Sessions()
	defer sessions.Close()
	var err error
	if p.target, err = newSessionTarget(ctx, p.sys, p.client, sessions, operands); err != nil {
		return err
	}
	return p.run(ctx)
}

// terminalType returns the terminal type of this process, or xterm if TERM is not set.
func terminalType(getenv func(string) string) string {
	if name := getenv("TERM"); name != "" {
		return name
	}
	return "xterm"
}

// parseEnv parses environment variables in the syntax of docker exec.
func parseEnv(list []string, getenv func(string) string) (map[string]string, error) {
	env := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if name == "" {
			return nil, exit.Usagef("--env %q has no name; write NAME=VALUE", text)
		}
		if !ok {
			if value = getenv(name); value == "" {
				continue
			}
		}
		env[name] = value
	}
	return env, nil
}
