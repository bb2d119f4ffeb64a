package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newSubmit(sys *system) *cobra.Command {
	var (
		input    []string
		watch    bool
		settings runOptions
	)
	cmd := &cobra.Command{
		Use:   "submit FILE",
		Short: "Start a run on a gateway and print its id",
		Args:  arguments(1, 1, "FILE"),
	}
	cmd.Flags().StringArrayVar(&input, "input", nil, "input of the run as key=value, where value may be JSON; may be repeated")
	cmd.Flags().BoolVar(&watch, "watch", false, "follow the run to its end; the exit code tells how it ended")
	settings.add(cmd.Flags(), "default 0")
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		options, err := settings.options(0)
		if err != nil {
			return err
		}
		req := &v1.SubmitRunRequest{Options: options}
		if req.Input, err = parseInput(input); err != nil {
			return err
		}
		d, err := readDocument(sys, args[0])
		if err != nil {
			return err
		}
		a, err := connectTo(*gateway)
		if err != nil {
			return err
		}
		defer a.close()
		res, err := a.submit(cmd.Context(), d, req)
		if err != nil {
			return err
		}
		if output.value == formatJSON {
			err = writeJSON(sys.stdout, map[string]string{"id": res.GetId(), "name": res.GetName()})
		} else {
			_, err = fmt.Fprintln(sys.stdout, res.GetId())
		}
		if err != nil || !watch {
			return err
		}
		return (&watching{sys: sys, api: a, id: res.GetId(), output: formatText}).watch(cmd.Context())
	}
	return cmd
}
