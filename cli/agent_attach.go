package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"switchyard/activities/executor"
	"switchyard/activities/executor/relay/session"
	"switchyard/activities/executor/shell"
	"switchyard/cli/exit"
)

func newAgentAttach(sys *system) *cobra.Command {
	var name, scratchDir string
	cmd := &cobra.Command{
		Use:   "attach -- COMMAND...",
		Short: "Keep an agent alive on this node, for tasks that send it messages",
		Long: `Keeps a program alive that reads messages and prints what it does as JSON lines, as
claude does with --input-format stream-json, until it ends or Ctrl-C. claude gets the
flags for that by itself; any other command runs as it is. What the agent says is shown.

Tasks of type claude_relay name the session in targetSessionId. The worker of this machine
makes it known with its next heartbeat, if it runs as the same user and has the same
--scratch-dir. Messages to one session take turns.`,
		Args: arguments(1, -1, "COMMAND"),
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&name, "name", "", "name of the session: at most 64 of letters, digits, '.', '_' and '-' (default the id that the program gives it)")
	cmd.Flags().StringVar(&scratchDir, "scratch-dir", "", "folder of the worker for private directories (default that for temporary files)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if name != "" {
			if err := session.CheckID(name); err != nil {
				return exit.Usagef("--name %w", err)
			}
		}
		if err := checkFolder("scratch-dir", scratchDir); err != nil {
			return err
		}
		sh, err := shell.New(shell.Options{Watchdog: true, PassEnv: []string{"*"}})
		if err != nil {
			return err
		}
		dir, err := os.Getwd()
		if err != nil {
			return errors.Join(err, sh.Close())
		}
		ctx := cmd.Context()
		result, err := session.Attach(ctx, session.AttachOptions{
			Shell: sh, Dir: session.Folder(scratchDir), Name: name, Command: args, WorkDir: dir, Log: sys.stdout, Stderr: sys.rawStderr,
			Ready: func(id string) { fmt.Fprintf(sys.screen, "session %s is attached\n", id) },
		})
		if closed := sh.Close(); err == nil {
			err = closed
		}
		switch {
		case executor.AsStartError(err) != nil:
			return exit.Usagef("start %s: %w", args[0], err)
		case err != nil:
			return err
		case result.Stopped:
			return ctx.Err()
		case result.ExitCode != 0:
			return &exit.Error{Code: exit.CodeNotDone, Err: fmt.Errorf("%s has ended with exit code %d", args[0], result.ExitCode)}
		}
		return nil
	}
	return cmd
}
