package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// envFlags holds the flags of `env create`.
type envFlags struct {
	req    v1.CreateEnvironmentRequest
	detach bool
	format *output.Choice
}

func newEnvCreate(sys *system) *cobra.Command {
	f := &envFlags{}
	cmd := &cobra.Command{
		Use:   "create NAME [TASK]",
		Short: "Create an environment from an image or a running task",
		Long: `Creates an environment and waits until it is ready. Its source is an image of a container
(--image) or of a virtual machine (--vm-image), which a node has or fetches, or a running
container or virtual machine (--from RUN TASK). TASK may be omitted if the run has only
one such task, and may be an instance, such as "desk[3]".

The task is suspended while its files are read. The environment contains everything that
was written in the task, except for mounts, environment variables and secrets.

If the command is interrupted, the creation continues; switchyard env delete NAME
cancels it. With --replace the new version replaces the old one: tasks that start before
it is ready get the old version, and running tasks keep theirs.`,
		Example: `  switchyard env create tools --image debian:13
  switchyard env create tools --from desk-7k2m9x4c vps --replace
  switchyard env create debian --vm-image s3://images/debian-13.qcow2`,
		Args: arguments(1, 2, "NAME"),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.req.Image, "image", "", "container image, such as debian:13")
	flags.StringVar(&f.req.VmImage, "vm-image", "", "virtual machine image: a path on a node, or the URL of an object in a bucket")
	flags.StringVar(&f.req.Run, "from", "", "create it from a running task of this run; TASK follows as an argument")
	flags.StringVar(&f.req.Node, "node", "", "node that creates it from an image (default a suitable node with the most free disk space)")
	flags.BoolVar(&f.req.Replace, "replace", false, "replace the environment of this name")
	flags.StringVar(&f.req.RegistryAuth, "registry-auth", "", "name of the node's credentials for the image's registry")
	flags.BoolVar(&f.detach, "detach", false, "do not wait until it is ready")
	clientFlag(cmd)
	f.format = output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error { return f.run(ctx, sys, a, args) })
	return cmd
}

// check completes the request from the arguments and refuses what every gateway would refuse.
func (f *envFlags) check(ctx context.Context, sys *system, a *client.Client, args []string) (err error) {
	if f.req.Name = args[0]; len(args) > 1 {
		f.req.Task = args[1]
	}
	sources := 0
	for _, given := range []string{f.req.GetImage(), f.req.GetVmImage(), f.req.GetRun()} {
		if given != "" {
			sources++
		}
	}
	switch {
	case !v1.IsEnvironmentName(f.req.GetName()):
		return exit.Usagef("%q is not a valid environment name; use at most 63 of [a-z0-9._-], with a letter or digit at both ends", f.req.GetName())
	case sources == 0:
		return exit.Usagef("environment %s needs a source; give --image IMAGE, --vm-image IMAGE or --from RUN TASK", f.req.GetName())
	case sources > 1:
		return exit.Usagef("--image, --vm-image and --from are mutually exclusive; give one of them")
	case f.req.GetTask() != "" && f.req.GetRun() == "":
		return exit.Usagef("unexpected argument %q; a task is named with its run, as in --from RUN %[1]s", f.req.GetTask())
	case f.req.GetRun() != "" && f.req.GetNode() != "":
		return exit.Usagef("--from and --node are mutually exclusive: the node that runs the task creates the environment")
	case f.req.GetImage() == "" && f.req.GetRegistryAuth() != "":
		return exit.Usagef("--registry-auth needs --image")
	case f.req.GetRun() != "":
		f.req.Run, err = sys.resolveRun(ctx, a, f.req.GetRun())
	}
	return err
}

func (f *envFlags) run(ctx context.Context, sys *system, a *client.Client, args []string) error {
	if err := f.check(ctx, sys, a, args); err != nil {
		return err
	}
	res, err := client.Call(ctx, a, a.Environments.CreateEnvironment, &f.req)
	if err != nil {
		return err
	}
	e := res.GetEnvironment()
	fmt.Fprintf(sys.screen, "environment %s (version %d) is being created on %s\n", e.GetName(), e.GetVersion(), e.GetNode())
	if !f.detach {
		if e, err = awaitEnvironment(ctx, sys, a, e); err != nil {
			return err
		}
		fmt.Fprintf(sys.screen, "environment %s (version %d) is ready, %s; tasks use it with environment: %[1]s\n", e.GetName(), e.GetVersion(), words.Size(e.GetSize()))
	}
	if f.format.Value == output.JSON {
		return output.WriteMessage(sys.stdout, e)
	}
	return nil
}
