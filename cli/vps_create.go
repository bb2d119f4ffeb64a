package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/config"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// defaultVpsWait is how long `vps create --wait` waits by default.
const defaultVpsWait = time.Minute

// vpsFlags holds the flags of `vps create`.
type vpsFlags struct {
	req       v1.CreateVpsRequest
	resources resourceFlags
	key       vpsKeyFlags
	mounts    []string
	env       []string
	secretEnv []string
	backend   *output.Choice
	node      string
	labels    []string
	wait      time.Duration
	format    *output.Choice
}

func newVpsCreate(sys *system) *cobra.Command {
	f := &vpsFlags{backend: &output.Choice{Value: v1.BackendDocker, Allowed: []string{v1.BackendDocker, v1.BackendQEMU}}}
	cmd := &cobra.Command{
		Use:   "create --image IMAGE",
		Short: "Create a machine and print its id",
		Long: `Creates a machine and prints its id, which is the id of its run. The machine is a
container from an image (--image), a virtual machine from a disk image (--vm-image), or
either from a named environment (--environment), as listed by switchyard env list.

With --ssh-key the keys in a .pub file can log in. With --generate-key a new key pair is
created; its private key is written to a file that only you can read, or else printed
once. Without either, you can still log in with switchyard ssh.

With --wait the command waits until the machine is running, for 60s or the given time;
the exit code is 1 if it is not running by then.`,
		Args: arguments(0, 0, ""),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.req.Image, "image", "", "image of the machine, which needs no SSH server")
	flags.Var(f.backend, "backend", "docker for a container, or qemu for a virtual machine, which --vm-image implies")
	flags.StringVar(&f.req.VmImage, "vm-image", "", "image of a virtual machine: a path on its node, the URL of an object in a bucket, or an environment")
	flags.StringVar(&f.req.VmDiskSize, "vm-disk-size", "", "size of the disk of a virtual machine, such as 50G (default that of its image)")
	flags.StringVar(&f.req.Environment, "environment", "", "named environment to create it from, instead of an image")
	flags.StringVar(&f.req.User, "user", "", "user to log in as (default the user of the image, or root for a virtual machine)")
	flags.StringVar(&f.req.Name, "name", "", "name of the machine, which its id begins with (default vps)")
	f.key.add(flags)
	f.resources.add(flags)
	flags.StringVar(&f.node, "node", "", "node to run it on, or part of one, such as gpu-1::2")
	flags.StringSliceVar(&f.labels, "node-label", nil, "label that its node must have; may be repeated")
	flags.StringArrayVar(&f.mounts, "mount", nil, "directory of the node to mount, as HOST:PATH, or HOST:PATH:ro for read-only; may be repeated")
	flags.StringVar(&f.req.IdleTimeout, "idle-timeout", "", "stop it when no session has been open for this long, such as 2h")
	flags.StringVar(&f.req.Timeout, "timeout", "", "maximum time that it may run, such as 3d")
	flags.StringArrayVar(&f.env, "env", nil, "environment variable of its programs, as NAME=VALUE; may be repeated")
	flags.StringArrayVar(&f.secretEnv, "secret-env", nil, "environment variable with a secret value, as NAME=store:SECRET; may be repeated")
	flags.BoolVar(&f.req.Privileged, "privileged", false, "run it with all of the node's privileges, if the node allows that")
	flags.StringVar(&f.req.Network, "network", "", "its network: none, host, or the name of a network on the node")
	flags.Int32Var(&f.req.Priority, "priority", 0, "urgency from 0 to 10; higher is placed first")
	flags.StringVar(&f.req.IdempotencyKey, "idempotency-key", "", "create only one machine for this key, even if the request is repeated")
	flags.DurationVar(&f.wait, "wait", 0, "wait until it is running, for at most this long")
	flags.Lookup("wait").NoOptDefVal = defaultVpsWait.String()
	clientFlag(cmd)
	f.format = output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error { return f.run(ctx, sys, a) })
	return cmd
}

// request completes the request from the flags.
func (f *vpsFlags) request() (err error) {
	switch {
	case f.req.GetImage() == "" && f.req.GetVmImage() == "" && f.req.GetEnvironment() == "":
		return exit.Usagef("--image is missing; give an image such as --image ubuntu:24.04, or use --environment NAME or --vm-image IMAGE")
	case f.wait < 0:
		return exit.Usagef("--wait %s: it must not be negative", f.wait)
	}
	if f.req.SshPublicKey, err = f.key.publicKey(); err != nil {
		return err
	}
	if f.req.GetVmImage() != "" {
		f.backend.Value = v1.BackendQEMU
	}
	if f.backend.Value != v1.BackendDocker {
		f.req.Backend = f.backend.Value
	}
	f.req.GenerateKey = f.key.generates()
	if f.req.Env, err = config.ParsePairs("env", f.env); err != nil {
		return err
	}
	if f.req.SecretEnv, err = config.ParsePairs("secret-env", f.secretEnv); err != nil {
		return err
	}
	if f.req.Mounts, err = parseMounts(f.mounts); err != nil {
		return err
	}
	if f.req.Resources, err = f.resources.resources(); err != nil {
		return err
	}
	if f.node != "" || len(f.labels) > 0 {
		f.req.Constraints = &v1.Constraints{TargetNode: f.node, NodeLabels: f.labels}
	}
	return nil
}

func (f *vpsFlags) run(ctx context.Context, sys *system, a *client.Client) error {
	if err := f.request(); err != nil {
		return err
	}
	file, err := f.key.createFile()
	if err != nil {
		return err
	}
	defer file.discard() // a no-op once the key is written
	res, err := client.Call(ctx, a, a.Vps.CreateVps, &f.req)
	if err != nil {
		return withKeyRemedy(err, f.req.GetIdempotencyKey(), "use a different key for another machine")
	}
	printWarnings(sys, res.GetId(), res.GetWarnings())
	if res.GetExisted() {
		fmt.Fprintf(sys.screen, "machine %s was created by an earlier request with this key\n", res.GetId())
	}
	if err := file.write(res); err != nil {
		return err
	}
	if err := f.print(sys, res); err != nil || f.wait == 0 {
		return err
	}
	return f.await(ctx, sys, a, res)
}

// print writes the ID of a machine, or the private key if that is not written elsewhere.
func (f *vpsFlags) print(sys *system, res *v1.CreateVpsResponse) error {
	printsKey := f.key.generates() && f.key.file() == ""
	if f.format.Value == output.JSON {
		document := map[string]any{
			"id": res.GetId(), "task": res.GetTask(), "existed": res.GetExisted(), "warnings": problemItems(source.Problems(res.GetWarnings())),
		}
		if f.key.generates() {
			document["publicKey"] = res.GetPublicKey()
		}
		if printsKey {
			document["privateKey"] = res.GetPrivateKey()
		}
		return output.WriteJSON(sys.stdout, document)
	}
	if !printsKey {
		_, err := fmt.Fprintln(sys.stdout, res.GetId())
		return err
	}
	fmt.Fprintf(sys.screen, "machine %s; its private key is shown once:\n", res.GetId())
	_, err := fmt.Fprint(sys.stdout, res.GetPrivateKey())
	return err
}

// await waits until a machine runs.
func (f *vpsFlags) await(ctx context.Context, sys *system, a *client.Client, created *v1.CreateVpsResponse) error {
	over := time.After(f.wait)
	for {
		m, err := getVps(ctx, a, &v1.GetVpsRequest{Id: created.GetId(), Task: created.GetTask()})
		if err != nil {
			return err
		}
		status := m.GetStatus()
		switch {
		case status == v1.TaskRunning:
			fmt.Fprintf(sys.screen, "machine %s is running on %s; log in with: %s\n", m.GetId(), m.GetNode(), m.GetSshCommand())
			return nil
		case v1.IsTaskTerminal(status) && !v1.IsTaskAway(status, m.GetNotice()):
			return &exit.Error{Code: exit.CodeNotDone, Err: fmt.Errorf("machine %s has ended as %s%s", m.GetId(), status, because(m.GetError())), Hint: "`switchyard runs logs " + m.GetId() + "` shows its output"}
		}
		select {
		case <-over:
			return &exit.Error{Code: exit.CodeNotDone, Err: fmt.Errorf("machine %s is still %s after %s%s", m.GetId(), status, f.wait, because(m.GetError())), Hint: vpsRemedy(m.GetId(), "") + ", and `switchyard vps kill " + m.GetId() + "` ends it"}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(sys.pollInterval):
		}
	}
}

// because returns the end of a sentence that gives the reason, or "" if there is none.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
