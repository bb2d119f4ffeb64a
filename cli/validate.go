package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newValidate(sys *system) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check definitions and list every problem",
		Args:  arguments(1, -1, "FILE"),
		RunE: func(_ *cobra.Command, files []string) error {
			bad := false
			for _, file := range files {
				d, err := readDocument(sys, file)
				if err != nil {
					bad = true
					fmt.Fprintln(sys.screen, message(err))
					continue
				}
				if _, err := fmt.Fprintf(sys.stdout, "%s: OK (%s)\n", file, count(len(d.def.GetTasks()), "task")); err != nil {
					return err
				}
			}
			if bad {
				return silent(exitUsage)
			}
			return nil
		},
	}
}

// count is a number of things in words: "1 task", "3 tasks".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
