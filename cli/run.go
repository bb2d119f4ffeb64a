package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/follow"
	"switchyard/cli/output"
	"switchyard/cli/stack"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/embedded"
	"switchyard/workflows/definition/source"
)

// submitGrace is how long a submit to this process may continue after an interrupt.
const submitGrace = 2 * time.Second

// runFlags holds the flags of `run`.
type runFlags struct {
	nodes    nodeFlags
	input    inputFlags
	source   sourceFlags
	logs     bool
	detach   bool
	store    string
	quotas   quotaFlags
	gateway  *string
	settings runOptions
	format   *output.Choice
	logLevel *output.Choice
}

func newRun(sys *system) *cobra.Command {
	f := &runFlags{nodes: nodeFlags{command: "run"}}
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a definition and wait for its end",
		Long: `Runs a definition and shows its progress until it ends.

Without a gateway, everything runs in this process: a Temporal server (or the one that
TEMPORAL_ADDRESS names), the gateway and the nodes. FILE may be - for standard input. The
first Ctrl-C cancels the run and waits for its end, the second one (or a wait of 11 s)
kills running tasks, and one that comes 1 s after that or later quits at once. The first
Ctrl-C ends nothing if finally already runs. An interrupted command says when finally
runs, and waits for its end; a Ctrl-C that comes 1 s after that or later ends finally.

On a gateway, the first Ctrl-C also cancels the run, or ends nothing if finally already
runs. The second one stops waiting for the end of the run, once the gateway has confirmed
the cancellation or has not done so for 5 s; a third one quits at once. The run continues
if the terminal is closed. With --detach the command only starts the run and prints its
id.

` + follow.FanOutRule,
		Args: arguments(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, sys, args[0]) },
	}
	flags := cmd.Flags()
	f.input.add(flags, "run")
	f.source.add(flags)
	flags.BoolVar(&f.logs, "logs", false, "also show the output of the tasks")
	flags.BoolVar(&f.detach, "detach", false, "start the run on the gateway, print its id and exit")
	flags.StringVar(&f.store, "store", "", "folder or URL for logs and results (default a temporary folder, removed after the run)")
	f.quotas.add(flags)
	f.gateway = gatewayFlag(cmd, "URL of a gateway, or of several ones of a fleet, to run on, instead of in this process")
	f.settings.add(flags, "default 5s in this process, else 0")
	f.nodes.addSome(flags)
	f.format = output.FormatFlag(cmd, output.Text, output.JSON, output.JSONL)
	f.logLevel = logFlag(cmd, "warn")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, sys *system, path string) (err error) {
	nodes, err := f.nodes.configs(1)
	if err != nil {
		return err
	}
	var limits stack.Config
	if err := f.quotas.into(&limits); err != nil {
		return err
	}
	if err := f.input.oneStdin(path); err != nil {
		return err
	}
	given, err := f.input.read(sys)
	if err != nil {
		return err
	}
	req := &v1.SubmitRunRequest{Batch: f.settings.batch}
	local, unless := *f.gateway == "", time.Duration(0)
	switch {
	case f.detach && local:
		return exit.Usagef("--detach needs a gateway (--gateway, SWITCHYARD_GATEWAY); without one, the run ends with this process")
	case f.detach && f.logs:
		return exit.Usagef("--detach and --logs are mutually exclusive; `switchyard runs logs -f RUN` follows the logs")
	case f.detach && f.format.Value == output.JSONL:
		return exit.Usagef("--detach and -o jsonl are mutually exclusive; -o json prints the id")
	}
	if local {
		unless = localPlacementTimeout
	}
	if req.Options, err = f.settings.options(unless); err != nil {
		return err
	}
	if !local {
		if err := refuseLocal(cmd); err != nil {
			return err
		}
	}
	d, err := readDocument(sys, path)
	if err != nil {
		return err
	}
	d.into(req)
	if req.Input, err = given.parse(sys, d.def); err != nil {
		return err
	}
	url, parts := *f.gateway, follow.LocalParts(nil)
	if local {
		log := logger(sys, f.logLevel)
		cfg := stack.Config{
			Store: f.store, LogQuota: limits.LogQuota, ArtifactQuota: limits.ArtifactQuota, Control: true, Gateway: "127.0.0.1:0", Nodes: nodes, Version: version(), Logger: log, ExitFolders: &sys.exitFolders,
		}
		if sys.getenv("TEMPORAL_ADDRESS") == "" {
			cfg.Temporal = &embedded.Options{Logger: log}
		} else if f.nodes.name == "" {
			// Other processes may run nodes on that Temporal, and a node replaces another one of the same name.
			for i := range nodes {
				nodes[i].Name = fmt.Sprintf("%s-%d", nodes[i].Name, os.Getpid())
			}
		}
		s, err := stack.Start(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		defer func() {
			if stopped := s.Stop(); stopped != nil {
				log.Warn("not everything stopped cleanly", "error", stopped)
			}
		}()
		url, parts = s.Gateway().URL(), s
	}
	a, err := sys.openClientAt(cmd, url)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := f.source.send(cmd.Context(), sys, a, d, req); err != nil {
		return err
	}
	var res *v1.SubmitRunResponse
	if local {
		// The grace period lets an interrupted submit return the run, which is then cancelled.
		submitting, cancel := withGrace(cmd.Context(), submitGrace)
		defer cancel()
		res, err = client.Call(submitting, a, a.Runs.SubmitRun, req)
	} else {
		res, err = startRun(cmd.Context(), sys, a, a.Runs.SubmitRun, req)
	}
	if err != nil {
		return err
	}
	printWarnings(sys, res.GetName(), res.GetWarnings())
	if f.detach {
		return startedRun(cmd.Context(), sys, a, res, f.format, false, map[string]any{
			"id": res.GetId(), "name": res.GetName(), "warnings": problemItems(source.Problems(res.GetWarnings())),
		})
	}
	w := &follow.Watcher{Terminal: sys.terminal(), Client: a, Run: res.GetId(), Format: f.format.Value, Logs: f.logs, OwnsRun: true, Local: parts, HasFinally: len(d.def.GetFinally()) > 0}
	return w.Watch(cmd.Context())
}

// withGrace returns a context that ends the grace period after ctx ends.
func withGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done():
		case <-time.After(grace):
			cancel()
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}
