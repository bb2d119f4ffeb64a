package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/portforward"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

func newRunsPortForward(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "port-forward RUN [TASK] [[ADDRESS:]LOCAL:]PORT...",
		Short: "Forward local TCP ports to a running task",
		Long: `Listens on local ports and forwards each connection to a port of a task. The task's node
opens the connection to the task, so the task need not be reachable from this machine.
The command prints where it listens and continues until Ctrl-C or until the task ends.
The exit code is then 0 if the task completed or was stopped, else 1. TASK may be omitted
if only one task is running.

8080 is port 8080 on both sides; 9000:80 is local port 9000 and port 80 of the task;
0:80 uses any free local port. Only local programs can connect, unless an ADDRESS allows
others, as in 0.0.0.0:9000:80. If nothing listens on the port of the task, each failed
connection is reported.`,
		Example: `  switchyard runs port-forward last notebook 8888
  switchyard runs port-forward last db 5433:5432 0:8080`,
		Args: arguments(2, -1, "RUN, or a port,"),
	}
	clientFlag(cmd)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		operands := args[:1]
		if !portforward.IsSpec(args[1]) {
			operands = args[:2]
		}
		specs, err := parseSpecs(args[len(operands):])
		if err != nil {
			return err
		}
		if len(specs) == 0 {
			return exit.Usagef("a port is missing, such as 8080 or 9000:80")
		}
		return forwardPorts(ctx, sys, a, operands, specs)
	})
	return cmd
}

func parseSpecs(texts []string) ([]portforward.Spec, error) {
	var specs []portforward.Spec
	for _, text := range texts {
		spec, err := portforward.ParseSpec(text)
		if err != nil {
			return nil, exit.Usagef("%s: %w", text, err)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// forwardPorts forwards ports until ctx or the task ends.
func forwardPorts(ctx context.Context, sys *system, a *client.Client, operands []string, specs []portforward.Spec) error {
	sessions := a.Sessions()
	defer sessions.Close()
	target, err := newSessionTarget(ctx, sys, a, sessions, operands)
	if err != nil {
		return err
	}
	if err := target.check(ctx, a); isOver(err) {
		return &exit.Error{Code: exit.CodeNotDone, Err: err}
	} else if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ports := &portGroup{target: target, out: sys.stdout, report: func(line string) { fmt.Fprintln(sys.screen, line) }}
	ports.onRefusal = func() {
		if err := target.check(ctx, a); isOver(err) {
			end(err)
		}
	}
	if err := ports.listen(ctx, specs); err != nil {
		return err
	}
	var parts sync.WaitGroup
	parts.Go(func() { end(ports.serve(ctx)) })
	parts.Go(func() {
		if err := target.awaitEnd(ctx, a); ctx.Err() == nil {
			end(err)
		}
	})
	<-ctx.Done()
	parts.Wait()
	err = context.Cause(ctx)
	if ended, ok := errors.AsType[*taskEnd](err); ok {
		if v1.IsTaskSuccess(ended.state) {
			fmt.Fprintln(sys.screen, ended)
			return nil
		}
		return &exit.Error{Code: exit.CodeNotDone, Err: ended, Hint: fmt.Sprintf("`switchyard runs get %s` shows how it ended", target.words())}
	}
	return err
}

// portGroup holds the ports of this machine that lead to one task.
type portGroup struct {
	target *sessionTarget
	out    io.Writer
	// report receives lines for people, from several goroutines at once.
	report func(line string)
	// onRefusal is called after a connection was refused. It may be nil.
	onRefusal func()

	specs     []portforward.Spec
	listeners []net.Listener
}

// listen opens all ports or none, and prints them.
func (g *portGroup) listen(ctx context.Context, specs []portforward.Spec) error {
	for _, spec := range specs {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", spec.ListenAddress())
		if err != nil {
			g.close()
			return &exit.Error{Code: exit.CodeNotDone, Err: fmt.Errorf("listen on %s: %w", spec.ListenAddress(), err), Hint: fmt.Sprintf("use any free port: 0:%d", spec.Remote)}
		}
		g.specs, g.listeners = append(g.specs, spec), append(g.listeners, l)
	}
	for i, l := range g.listeners {
		if _, err := fmt.Fprintf(g.out, "%s -> %d\n", l.Addr(), g.specs[i].Remote); err != nil {
			g.close()
			return err
		}
	}
	return nil
}

func (g *portGroup) close() {
	for _, l := range g.listeners {
		_ = l.Close()
	}
}

// serve serves all ports until ctx ends or one port fails.
func (g *portGroup) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ports sync.WaitGroup
	inside := g.target.inside()
	for i, l := range g.listeners {
		port := g.specs[i].Remote
		f := &portforward.Forward{
			Dial:    func(ctx context.Context) (net.Conn, error) { return inside.Dial(ctx, port) },
			Refused: func(err error) { g.refused(port, err) },
		}
		ports.Go(func() {
			if err := f.Serve(ctx, l); err != nil {
				cancel(err)
			}
		})
	}
	ports.Wait()
	return context.Cause(ctx)
}

func (g *portGroup) refused(port int, err error) {
	g.report("port " + strconv.Itoa(port) + ": " + words.OneLine(err.Error()))
	if g.onRefusal != nil {
		g.onRefusal()
	}
}

// taskEnd is the cause that ends a command because its task has ended.
type taskEnd struct{ what, state string }

// Error names the task or run that has ended, and its state.
func (e *taskEnd) Error() string { return e.what + " has ended: it is " + e.state }

func isOver(err error) bool {
	_, ended := errors.AsType[*taskEnd](err)
	return ended
}

// check returns an error if the target does not exist or has ended. It leaves a target without a task to the gateway.
func (t *sessionTarget) check(ctx context.Context, a *client.Client) error {
	run, name := t.names()
	if name == "" {
		page, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: run, PageSize: 1, Brief: true})
		if err != nil {
			return err
		}
		t.resolve(page.GetRun().GetId(), "")
		if state := page.GetRun().GetState(); v1.IsRunTerminal(state) {
			return &taskEnd{"run " + page.GetRun().GetId(), state}
		}
		return nil
	}
	id, task, _, err := readTask(ctx, a, run, name)
	if err != nil {
		return err
	}
	t.resolve(id, name)
	if v1.HasTaskEnded(task) {
		return &taskEnd{t.String(), task.GetState()}
	}
	return nil
}

// watchPause is how long awaitEnd waits after the gateway was unreachable for client.Patience.
const watchPause = 5 * time.Second

// awaitEnd returns a *taskEnd when the target has ended. It waits for a gateway that is unreachable.
func (t *sessionTarget) awaitEnd(ctx context.Context, a *client.Client) error {
	for {
		err := t.watch(ctx, a)
		var failed *exit.Error
		if isOver(err) || ctx.Err() != nil || !errors.As(err, &failed) || failed.Code != exit.CodeSystem {
			return err
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch does the work of awaitEnd while the gateway answers.
func (t *sessionTarget) watch(ctx context.Context, a *client.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run, _ := t.names()
	messages, done := make(chan *v1.WatchRunResponse), make(chan error, 1)
	go func() { done <- a.Watch(ctx, run, messages, func() {}) }()
	for {
		select {
		case m := <-messages:
			if err := t.endIn(m.GetRun()); err != nil {
				cancel()
				<-done
				return err
			}
		case err := <-done:
			if err != nil {
				return err
			}
			if err := t.check(ctx, a); err != nil {
				return err
			}
			return &taskEnd{"run " + run, "over"}
		}
	}
}

// endIn returns a *taskEnd if a run, or a change of it, shows that the target has ended.
func (t *sessionTarget) endIn(run *v1.Run) error {
	_, name := t.names()
	if of, _, instance := names.ParseInstanceName(name); instance {
		name = of
	}
	if task := run.GetTasks()[name]; task != nil && v1.HasTaskEnded(task) {
		return &taskEnd{t.String(), task.GetState()}
	}
	if v1.IsRunTerminal(run.GetState()) {
		return &taskEnd{"run " + run.GetId(), run.GetState()}
	}
	return nil
}
