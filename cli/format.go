package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Output formats.
const (
	formatText  = "text"
	formatJSON  = "json"
	formatJSONL = "jsonl"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }

// Set refuses a word that is not allowed.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		return usageError("it must be %s", strings.Join(c.allowed, ", "))
	}
	c.value = text
	return nil
}

// outputFlag adds -o with some formats; the first is the default.
func outputFlag(cmd *cobra.Command, formats ...string) *choice {
	c := &choice{value: formats[0], allowed: formats}
	cmd.Flags().VarP(c, "output", "o", "format of what goes to standard output")
	// The error is that the command has no such flag.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return c
}
