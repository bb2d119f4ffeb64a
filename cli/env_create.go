package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
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
		Short: "Create an environment of an image, or of a task that runs",
		Long: `Creates an environment and waits until it is ready: of an image of a container
(--image) or of a virtual machine (--vm-image), which a node has or fetches; or of a
container or a machine that runs (--from RUN TASK). TASK may be left out if the run has
one such task, and may be an instance, such as "desk[3]".

A task stands still while its files are read. Mounts, environment variables and secrets
of the task are not in the environment; all else that was written there is.

An interrupted command leaves the creation under way; switchyard env delete NAME ends
it. With --replace a newer version takes the place of an older one: tasks that start
before it is ready get the older one, and those that run keep what they have.`,
		Example: `  switchyard env create tools --image debian:13
  switchyard env create tools --from desk-7k2m9x4c vps --replace
  switchyard env create debian --vm-image s3://images/debian-13.qcow2`,
		Args: arguments(1, 2, "NAME"),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.req.Image, "image", "", "image of a container, such as debian:13")
	flags.StringVar(&f.req.VmImage, "vm-image", "", "image of a virtual machine: a path on a node, or the URL of an object in a bucket")
	flags.StringVar(&f.req.Run, "from", "", "run of the task that it is made of, with the task behind it")
	flags.StringVar(&f.req.Node, "node", "", "node that makes it of an image (default one that can, with the most free disk)")
	flags.BoolVar(&f.req.Replace, "replace", false, "take the place of an environment of the name")
	flags.StringVar(&f.req.RegistryAuth, "registry-auth", "", "name under which the node keeps the credentials for the image's registry")
	flags.BoolVar(&f.detach, "detach", false, "do not wait until it is ready")
	clientFlag(cmd)
	f.format = output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error { return f.run(ctx, sys, a, args) })
	return cmd
}

// check completes the request from the arguments and refuses what every gateway would refuse.
func (f *envFlags) check(sys *system, a *client.Client, args []string) (err error) {
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
		return exit.Usagef("%q is no name of an environment; it is at most 63 of [a-z0-9._-], the first and the last a letter or digit", f.req.GetName())
	case sources == 0:
		return exit.Usagef("what is %s made of? Give --image IMAGE, --vm-image IMAGE, or --from RUN TASK", f.req.GetName())
	case sources > 1:
		return exit.Usagef("--image, --vm-image and --from exclude each other; give one of them")
	case f.req.GetTask() != "" && f.req.GetRun() == "":
		return exit.Usagef("%q is one argument too many; a task is named with its run, as in --from RUN %[1]s", f.req.GetTask())
	case f.req.GetRun() != "" && f.req.GetNode() != "":
		return exit.Usagef("--from and --node exclude each other: an environment of a task is made on the node that runs it")
	case f.req.GetImage() == "" && f.req.GetRegistryAuth() != "":
		return exit.Usagef("--registry-auth is for --image")
	case f.req.GetRun() != "":
		f.req.Run, err = sys.resolveOwnRun(a.URL, f.req.GetRun())
	}
	return err
}

func (f *envFlags) run(ctx context.Context, sys *system, a *client.Client, args []string) error {
	if err := f.check(sys, a, args); err != nil {
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
		fmt.Fprintf(sys.screen, "environment %s (version %d) is ready, with %s; tasks name it by environment: %[1]s\n", e.GetName(), e.GetVersion(), sizeText(e.GetSize()))
	}
	if f.format.Value == output.JSON {
		return output.WriteMessage(sys.stdout, e)
	}
	return nil
}
