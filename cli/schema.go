package cli

import (
	"github.com/spf13/cobra"

	"switchyard/workflows/definition"
)

func newSchema(sys *system) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of definitions, for editors",
		Args:  arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := sys.stdout.Write(definition.Schema())
			return err
		},
	}
}
