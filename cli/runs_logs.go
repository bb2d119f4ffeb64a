package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// logFlags are the flags of `runs logs`.
type logFlags struct {
	follow, stdout, stderr, raw, timestamps bool
	attempt                                 int32
	tail                                    int
	since                                   string
	gateway                                 *string
	output                                  *choice
}

func newRunsLogs(sys *system) *cobra.Command {
	f := &logFlags{}
	cmd := &cobra.Command{
		Use:   "logs RUN [TASK]",
		Short: "Print what the tasks of a run have printed",
		Long: `Prints what the tasks of a run have printed, standard output and standard error
each to its own, in the order in which the node read them. Lines begin with "task | "
when there is more than one task, or with "task[3] | " where it has fanned out; those
of a single one are as they were. TASK may be an instance: "each[3]". To a terminal
goes only what shows as text; --raw lets through what would set its title, clear it,
or worse.`,
		Args: arguments(1, 2, "RUN"),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on until the run, or the task, has ended")
	flags.Int32Var(&f.attempt, "attempt", -1, "only this attempt, from 0 (default the newest)")
	flags.BoolVar(&f.stdout, "stdout", false, "only standard output")
	flags.BoolVar(&f.stderr, "stderr", false, "only standard error")
	flags.BoolVar(&f.raw, "raw", false, "write every byte to a terminal, escape sequences too")
	flags.IntVar(&f.tail, "tail", -1, "only so many of the last lines of each task, and what follows (default all)")
	flags.StringVar(&f.since, "since", "", "only what was printed within this time, such as 10m, or since a time such as 2026-03-14T15:09:26Z")
	flags.BoolVar(&f.timestamps, "timestamps", false, "begin each line with the time at which its node read it")
	f.gateway, f.output = clientFlag(cmd), outputFlag(cmd, formatText, formatJSON, formatJSONL)
	cmd.RunE = onGateway(f.gateway, func(ctx context.Context, a *api, args []string) error { return f.run(ctx, sys, a, args) })
	return cmd
}

// request is what the flags ask for.
func (f *logFlags) request(now time.Time) (*v1.StreamRunLogsRequest, error) {
	req := &v1.StreamRunLogsRequest{}
	switch {
	case f.stdout && f.stderr:
		return nil, usageError("--stdout and --stderr exclude each other; without them both are printed")
	case f.follow && f.output.value == formatJSON:
		return nil, usageError("-o json is one document, which --follow has no end for; use -o jsonl")
	case f.raw && f.output.value != formatText:
		return nil, usageError("--raw is for -o text; JSON holds only text")
	case f.stdout:
		req.Stream = "stdout"
	case f.stderr:
		req.Stream = "stderr"
	}
	if f.attempt >= 0 {
		req.Attempt = &f.attempt
	}
	if f.since == "" {
		return req, nil
	}
	var err error
	req.Since, err = parseTime("since", f.since, now)
	return req, err
}

// parseTime reads the value of a flag such as --since: how long ago, or a time.
func parseTime(flag, text string, now time.Time) (*timestamppb.Timestamp, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		within, err := time.ParseDuration(text)
		if err != nil || within < 0 {
			return nil, usageError("--%s %q: write how long ago, such as 10m, or a time such as 2026-03-14T15:09:26Z", flag, text)
		}
		at = now.Add(-within)
	}
	return timestamppb.New(at), nil
}

// printer is where the flags want the lines.
func (f *logFlags) printer(sys *system) *logPrinter {
	p := &logPrinter{stdout: sys.stdout, stderr: sys.screen, stdoutPlain: sys.stdoutPlain, stderrPlain: sys.stderrPlain, tail: f.tail, gathering: f.tail >= 0}
	if f.raw {
		p.stdout, p.stderr, p.stdoutPlain, p.stderrPlain = sys.rawStdout, sys.rawStderr, false, false
	}
	if f.timestamps {
		p.zone = sys.zone
	}
	if f.output.value != formatText {
		p.document = &logDocument{w: sys.stdout, lines: f.output.value == formatJSONL}
	}
	return p
}

func (f *logFlags) run(ctx context.Context, sys *system, a *api, args []string) error {
	req, err := f.request(sys.now())
	if err != nil {
		return err
	}
	page, err := call(ctx, a, a.calls.GetRun, &v1.GetRunRequest{Id: args[0], PageSize: 2, Brief: true})
	if err != nil {
		return err
	}
	// A prefix, or "last", must not become another run from here on.
	req.Id = page.GetRun().GetId()
	sys.sayWhich(args[0], req.GetId())
	p := f.printer(sys)
	if len(args) == 2 {
		req.Task, p.only = args[1], args[1]
	} else {
		p.prefix = len(page.GetRun().GetTasks()) > 1 || page.GetNextPageToken() != ""
		for name := range page.GetRun().GetTasks() {
			p.only = name
		}
	}
	logs := &logStream{api: a, req: req, lost: func(err error) {
		fmt.Fprintf(sys.screen, "the gateway does not answer, trying again: %s\n", tui.OneLine(err.Error()))
	}}
	err = f.read(ctx, logs, p)
	err = errors.Join(err, p.flush())
	if err == nil && p.document != nil {
		err = p.document.end()
	}
	if err != nil {
		return err
	}
	return logs.complete()
}

// read prints the last lines first, if only they are wanted, and then what follows.
func (f *logFlags) read(ctx context.Context, logs *logStream, p *logPrinter) error {
	if p.gathering {
		if err := logs.read(ctx, p); err != nil || !f.follow {
			return err
		}
		if err := p.release(); err != nil {
			return err
		}
	}
	logs.req.Follow = f.follow
	return logs.read(ctx, p)
}
