package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// logFlags holds the flags of `runs logs`.
type logFlags struct {
	follow, children, stdout, stderr, raw, timestamps bool
	attempt, generation                               int32
	tail                                              int
	since                                             string
	format                                            *output.Choice
}

func newRunsLogs(sys *system) *cobra.Command {
	f := &logFlags{}
	cmd := &cobra.Command{
		Use:   "logs RUN [TASK]",
		Short: "Print the output of the tasks of a run",
		Long: `Prints the output of the tasks of a run, standard output and standard error each to its
own stream, in the order in which the node read them. Lines begin with "task | " if there
are several tasks, or with "task[3] | " for instances; the lines of a single task have no
prefix. TASK may be an instance, such as "each[3]". Only text is written to a terminal;
--raw also writes escape sequences, which can change its title, clear it, or worse.

--children also prints the output of the runs that tasks of type run have started, and
of the runs below them; their lines begin with "task/task of the child | ".`,
		Args: arguments(1, 2, "RUN"),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "follow the output until the run or the task ends")
	flags.BoolVar(&f.children, "children", false, "also the output of the child runs so far")
	flags.Int32Var(&f.attempt, "attempt", -1, "only this attempt, counted from 0, with each of its starts (default the newest start)")
	flags.Int32Var(&f.generation, "generation", -1, "only this generation of the run, counted from 0; runs retry adds one (default the newest of each task)")
	flags.BoolVar(&f.stdout, "stdout", false, "only standard output")
	flags.BoolVar(&f.stderr, "stderr", false, "only standard error")
	flags.BoolVar(&f.raw, "raw", false, "write every byte to a terminal, including escape sequences")
	flags.IntVar(&f.tail, "tail", -1, "only this many of the last lines of each task, and new lines (default all)")
	flags.StringVar(&f.since, "since", "", "only lines newer than a duration such as 10m, or since a time such as 2026-03-14T15:09:26Z")
	flags.BoolVar(&f.timestamps, "timestamps", false, "begin each line with the time at which its node read it")
	clientFlag(cmd)
	f.format = output.FormatFlag(cmd, output.Text, output.JSON, output.JSONL)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error { return f.run(ctx, sys, a, args) })
	return cmd
}

// request returns the request that the flags describe.
func (f *logFlags) request(now time.Time) (*v1.StreamRunLogsRequest, error) {
	req := &v1.StreamRunLogsRequest{Children: f.children}
	switch {
	case f.children && (f.follow || f.attempt >= 0 || f.generation >= 0):
		return nil, exit.Usagef("--children cannot be combined with --follow, --attempt or --generation; give the id of the child run, which `switchyard runs get RUN` shows, instead of RUN")
	case f.stdout && f.stderr:
		return nil, exit.Usagef("--stdout and --stderr are mutually exclusive; leave out both to print both streams")
	case f.follow && f.format.Value == output.JSON:
		return nil, exit.Usagef("-o json cannot be combined with --follow; use -o jsonl")
	case f.raw && f.format.Value != output.Text:
		return nil, exit.Usagef("--raw needs -o text; JSON can only hold text")
	case f.stdout:
		req.Stream = "stdout"
	case f.stderr:
		req.Stream = "stderr"
	}
	if f.attempt >= 0 {
		req.Attempt = &f.attempt
	}
	if f.generation >= 0 {
		req.Generation = &f.generation
	}
	if f.since == "" {
		return req, nil
	}
	var err error
	req.Since, err = parseTime("since", f.since, now)
	return req, err
}

// parseTime parses the value of a flag such as --since: an age or a time.
func parseTime(flag, text string, now time.Time) (*timestamppb.Timestamp, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		within, err := time.ParseDuration(text)
		if err != nil || within < 0 {
			return nil, exit.Usagef("--%s %q: use a duration such as 10m, or a time such as 2026-03-14T15:09:26Z", flag, text)
		}
		at = now.Add(-within)
	}
	return timestamppb.New(at), nil
}

// printer returns a printer that writes lines as the flags ask.
func (f *logFlags) printer(sys *system) *output.LogPrinter {
	p := &output.LogPrinter{Stdout: sys.stdout, Stderr: sys.screen, StdoutPlain: sys.stdoutPlain, StderrPlain: sys.stderrPlain, Tail: f.tail, Gathering: f.tail >= 0}
	if f.raw {
		p.Stdout, p.Stderr, p.StdoutPlain, p.StderrPlain = sys.rawStdout, sys.rawStderr, false, false
	}
	if f.timestamps {
		p.Zone = sys.zone
	}
	if f.format.Value != output.Text {
		p.Document = &output.LogDocument{Out: sys.stdout, Lines: f.format.Value == output.JSONL}
	}
	return p
}

func (f *logFlags) run(ctx context.Context, sys *system, a *client.Client, args []string) error {
	req, err := f.request(sys.now())
	if err != nil {
		return err
	}
	run, err := sys.resolveRun(ctx, a, args[0])
	if err != nil {
		return err
	}
	page, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: run, PageSize: 2, Brief: true})
	if err != nil {
		return err
	}
	// The resolved ID keeps a prefix from naming another run later.
	req.Id = page.GetRun().GetId()
	p := f.printer(sys)
	if len(args) == 2 {
		req.Task, p.Only = args[1], args[1]
	} else {
		p.Prefix = len(page.GetRun().GetTasks()) > 1 || page.GetNextPageToken() != ""
		for name := range page.GetRun().GetTasks() {
			p.Only = name
		}
	}
	if f.children {
		p.Prefix, p.Only = true, ""
	}
	logs := &client.LogStream{Client: a, Request: req, OnLost: func() { fmt.Fprintln(sys.screen, a.AwayText()) }}
	err = f.read(ctx, logs, p)
	err = errors.Join(err, p.Flush())
	if err == nil && p.Document != nil {
		err = p.Document.End()
	}
	if err != nil {
		return err
	}
	if !f.children && !p.Printed() {
		sys.printChildrenHint(ctx, a, req.GetId(), req.GetTask())
	}
	return logs.Missing()
}

// printChildrenHint prints how to see the logs of the child runs of a run or of one task, if it has any.
func (s *system) printChildrenHint(ctx context.Context, a *client.Client, run, task string) {
	req := &v1.GetRunRequest{Id: run, Brief: true}
	if task != "" {
		of, _, instance := names.ParseInstanceName(task)
		if !instance {
			of = task
		}
		req.Tasks = []string{of}
	}
	starters, err := a.Run(ctx, req, func(t *v1.Task) bool { return t.GetType() == v1.TypeRun && (t.GetChildRun() != "" || t.GetCount() > 0) })
	if err != nil || len(starters.GetTasks()) == 0 {
		return // an error is ignored because this is only a hint
	}
	command := "switchyard runs logs " + run
	if task != "" {
		command += " " + output.ShellWord(task)
	}
	fmt.Fprintf(s.screen, "run %s has printed nothing itself; `%s --children` prints what its child runs have printed\n", run, command)
}

// read prints the tail first, if the flags ask for one, and then what follows.
func (f *logFlags) read(ctx context.Context, logs *client.LogStream, p *output.LogPrinter) error {
	if p.Gathering {
		if err := logs.Read(ctx, p); err != nil || !f.follow {
			return err
		}
		if err := p.Release(); err != nil {
			return err
		}
	}
	logs.Request.Follow = f.follow
	return logs.Read(ctx, p)
}
