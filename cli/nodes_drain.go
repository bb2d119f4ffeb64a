package cli

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newNodesDrain(sys *system) *cobra.Command {
	var (
		deadline time.Duration
		wait     bool
	)
	req := &v1.DrainNodeRequest{}
	cmd := &cobra.Command{
		Use: "drain NAME", Aliases: []string{"cordon"},
		Short: "Take a node out of service: waiting tasks move at once, running tasks may finish",
		Long: `Takes a node out of service until it is put back with undrain, even if its worker
restarts. Waiting tasks move to other nodes at once; running tasks may finish until the
deadline and then move too. None of this uses up an attempt. Without --deadline, running
tasks are left alone, as by cordon in Kubernetes.

With --wait, Ctrl-C stops the waiting but not the drain.`,
		Args: arguments(1, 1, "NAME"),
	}
	cmd.Flags().DurationVar(&deadline, "deadline", 0, "how long running tasks may continue, such as 10m; 0 means until they end")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until no task is left on the node")
	cmd.Flags().StringVar(&req.Reason, "reason", "", "reason to show with the change")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if deadline < 0 {
			return exit.Usagef("--deadline %s: it must not be negative", deadline)
		}
		if req.Name = args[0]; deadline > 0 {
			req.Deadline = durationpb.New(deadline)
		}
		res, err := client.Call(ctx, a, a.Nodes.DrainNode, req)
		if err != nil {
			return err
		}
		n := res.GetNode()
		fmt.Fprintf(sys.screen, "node %s is draining\n", n.GetName())
		if wait {
			if n, err = awaitDrained(ctx, sys, a, n); err != nil {
				return err
			}
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, n)
		}
		return nil
	})
	return cmd
}

// awaitDrained waits until a draining node has no attempts. It tolerates a gateway that is unreachable for a while.
func awaitDrained(ctx context.Context, sys *system, a *client.Client, n *v1.Node) (*v1.Node, error) {
	name := n.GetName()
	var lostAt time.Time // zero while the gateway answers
	for told := int32(-1); ; {
		switch {
		case n.GetDrained(), n.GetState() == v1.NodeOffline:
			// The leases of the attempts of an offline node have expired.
			fmt.Fprintf(sys.screen, "node %s has drained\n", name)
			return n, nil
		case n.GetState() == v1.NodeActive:
			return nil, &exit.Error{Code: exit.CodeNotDone, Err: fmt.Errorf("node %s was put back into service before it had drained", name)}
		case n.GetRunning() != told:
			told = n.GetRunning()
			fmt.Fprintf(sys.screen, "node %s: %d running\n", name, told)
		}
		select {
		case <-ctx.Done():
			fmt.Fprintf(sys.screen, "node %s is still draining; `switchyard nodes undrain %s` puts it back into service\n", name, name)
			return nil, ctx.Err()
		case <-time.After(sys.pollInterval):
		}
		res, err := a.Nodes.GetNode(ctx, connect.NewRequest(&v1.GetNodeRequest{Name: name}))
		switch {
		case err == nil:
			n, lostAt = res.Msg.GetNode(), time.Time{}
		case ctx.Err() != nil:
		case !client.IsAway(err):
			return nil, a.Failure(err)
		case lostAt.IsZero():
			lostAt = time.Now()
		case time.Since(lostAt) > client.Patience:
			return nil, a.Failure(err)
		}
	}
}
