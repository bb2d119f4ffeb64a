package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newEnv(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "env",
		Aliases: []string{"environments"},
		Short:   "Create, list and delete the named environments of tasks",
		Long: `Create, list and delete named environments: container images and virtual machine disks
in the store. Each node that runs a task with environment: NAME fetches the newest
version. An environment is created from an image, or from a running container or virtual
machine with everything that was installed in it.`,
		Args: subcommands,
		RunE: help,
	}
	cmd.AddCommand(newEnvCreate(sys), newEnvList(sys), newEnvGet(sys), newEnvDelete(sys))
	return cmd
}

// environmentSize formats the size of an environment for people, or returns "" if nothing of it is stored.
func environmentSize(e *v1.Environment) string {
	if e.GetSize() == 0 {
		return ""
	}
	return words.Size(e.GetSize())
}

// environmentSource returns the task or image that an environment was created from.
func environmentSource(e *v1.Environment) string {
	if e.GetRun() != "" {
		return "task " + e.GetTask() + " of run " + e.GetRun()
	}
	return e.GetImage()
}

// environmentNote returns one line about an environment beyond its state.
func environmentNote(e *v1.Environment) string {
	next := e.GetCreation()
	switch next.GetState() {
	case "":
		return words.OneLine(e.GetError())
	case v1.EnvironmentFailed:
		return words.OneLine(fmt.Sprintf("version %d was not created%s", next.GetVersion(), because(next.GetError())))
	}
	return words.OneLine(strings.TrimSpace(fmt.Sprintf("version %d is being created, %s stored%s", next.GetVersion(), words.Size(next.GetSize()), because(next.GetError()))))
}
