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
		Short: "Keep an agent running on this node for tasks to message",
		Long: `Runs a program that reads messages and prints events as JSON lines, as claude does with
--input-format stream-json, until the program ends or you press Ctrl-C. claude gets these
flags automatically; any other command runs unchanged. The agent's replies are shown.

Tasks of type claude_relay name the session in targetSessionId. The worker on this machine
announces the session with its next heartbeat if it runs as the same user with the same
--scratch-dir. Messages to one session are delivered one at a time.`,
		Args: arguments(1, -1, "COMMAND"),
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&name, "name", "", "name of the session: at most 64 letters, digits, '.', '_' or '-' (default the id that the program reports)")
	cmd.Flags().StringVar(&scratchDir, "scratch-dir", "", "the worker's --scratch-dir, if it has one")
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
		folder, err := session.Folder(scratchDir)
		if err != nil {
			return errors.Join(err, sh.Close())
		}
		ctx := cmd.Context()
		result, err := session.Attach(ctx, session.AttachOptions{
			Shell: sh, Dir: folder, Name: name, Command: args, WorkDir: dir, Log: sys.stdout, Stderr: sys.rawStderr,
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
