package cli

import (
	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsLogs(sys *system) *cobra.Command {
	var (
		follow, stdout, stderr bool
		attempt                int32
	)
	cmd := &cobra.Command{
		Use:   "logs RUN [TASK]",
		Short: "Print what the tasks of a run have printed",
		Long: `Prints what the tasks of a run have printed, standard output and standard error
each to its own. Lines begin with "task | " when there is more than one task, or with
"task[3] | " where it has fanned out; those of a single one are as they were. TASK may
be an instance: "each[3]".`,
		Args: arguments(1, 2, "RUN"),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "go on until the run, or the task, has ended")
	flags.Int32Var(&attempt, "attempt", -1, "only this attempt, from 0 (default the newest)")
	flags.BoolVar(&stdout, "stdout", false, "only standard output")
	flags.BoolVar(&stderr, "stderr", false, "only standard error")
	gateway := clientFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req := &v1.StreamRunLogsRequest{Id: args[0], Follow: follow}
		if len(args) == 2 {
			req.Task = args[1]
		}
		if attempt >= 0 {
			req.Attempt = &attempt
		}
		switch {
		case stdout && stderr:
			return usageError("--stdout and --stderr exclude each other; without them both are printed")
		case stdout:
			req.Stream = "stdout"
		case stderr:
			req.Stream = "stderr"
		}
		a, err := connectTo(*gateway)
		if err != nil {
			return err
		}
		defer a.close()
		p := &logPrinter{stdout: sys.stdout, stderr: sys.screen, only: req.GetTask()}
		if req.GetTask() == "" {
			page, err := call(cmd.Context(), a, a.calls.GetRun, &v1.GetRunRequest{Id: req.GetId(), PageSize: 2})
			if err != nil {
				return err
			}
			req.Id = page.GetRun().GetId()
			p.prefix = len(page.GetRun().GetTasks()) > 1 || page.GetNextPageToken() != ""
			for name := range page.GetRun().GetTasks() {
				p.only = name
			}
		}
		return a.logs(cmd.Context(), req, p)
	}
	return cmd
}
