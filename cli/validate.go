package cli

import (
	"errors"
	"fmt"
	v1 "switchyard/proto/switchyard/v1"

	"github.com/spf13/cobra"

	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	"switchyard/workflows/definition/source"
)

func newValidate(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check definitions and list every problem",
		Args:  arguments(1, -1, "FILE"),
	}
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = func(_ *cobra.Command, files []string) error {
		bad, items := false, make([]validated, 0, len(files))
		for _, file := range files {
			d, err := readDocument(sys, file)
			if err != nil {
				bad = true
				fmt.Fprintln(sys.screen, message(err))
				items = append(items, validated{File: file, Problems: problemItems(err), Warnings: []problemItem{}})
				continue
			}
			items = append(items, validated{File: file, Valid: true, Name: d.def.GetName(), Tasks: v1.CountTasks(d.def), Problems: []problemItem{}})
			items[len(items)-1].Warnings = problemItems(d.warnings)
			printWarnings(sys, file, d.warnings)
			if format.Value == output.JSON {
				continue
			}
			if _, err := fmt.Fprintf(sys.stdout, "%s: OK (%s)\n", file, words.Count(v1.CountTasks(d.def), "task")); err != nil {
				return err
			}
		}
		if format.Value == output.JSON {
			if err := output.WriteJSON(sys.stdout, map[string]any{"items": items, "nextPageToken": ""}); err != nil {
				return err
			}
		}
		if bad {
			return exit.Silent(exit.CodeUsage)
		}
		return nil
	}
	return cmd
}

// validated is a checked file as JSON prints it.
type validated struct {
	File     string        `json:"file"`
	Valid    bool          `json:"valid"`
	Name     string        `json:"name"`
	Tasks    int           `json:"tasks"`
	Problems []problemItem `json:"problems"`
	Warnings []problemItem `json:"warnings"`
}

// problemItem is a fault of a definition as JSON prints it.
type problemItem struct {
	Line    int32  `json:"line"`
	Column  int32  `json:"column"`
	Path    string `json:"path"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// problemItems returns the faults that an error lists, or the error itself if it lists none.
func problemItems(err error) []problemItem {
	found, ok := errors.AsType[source.Problems](err)
	if !ok {
		return []problemItem{{Message: err.Error()}}
	}
	items := make([]problemItem, 0, len(found))
	for _, p := range found {
		items = append(items, problemItem{p.GetLine(), p.GetColumn(), p.GetPath(), p.GetMessage(), p.GetHint()})
	}
	return items
}
