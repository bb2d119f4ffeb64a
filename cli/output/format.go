package output

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/exit"
	"switchyard/workflows/nearest"
)

// The output formats.
const (
	Text  = "text"
	JSON  = "json"
	JSONL = "jsonl"
	YAML  = "yaml"
)

// Choice is the value of a flag that takes one of a few words.
type Choice struct {
	Value   string
	Allowed []string
}

// String returns the chosen word.
func (c *Choice) String() string { return c.Value }

// maxInlineWords is the longest list of allowed words that the flag column shows.
const maxInlineWords = 24

// Type returns the allowed words for the usage text, or "word" if they are too long. Completion, and the error for
// another word, list them all.
func (c *Choice) Type() string {
	if words := strings.Join(c.Allowed, "|"); len(words) <= maxInlineWords {
		return words
	}
	return "word"
}

// Set chooses a word. It returns an error if the word is not allowed.
func (c *Choice) Set(text string) error {
	if !slices.Contains(c.Allowed, text) {
		wants := "it must be " + nearest.Alternatives(c.Allowed)
		return exit.Usagef("%s", strings.TrimSuffix(wants+"; "+nearest.DidYouMean(text, c.Allowed), "; "))
	}
	c.Value = text
	return nil
}

// FormatFlag adds -o with the given formats; the first is the default.
func FormatFlag(cmd *cobra.Command, formats ...string) *Choice {
	c := &Choice{Value: formats[0], Allowed: formats}
	cmd.Flags().VarP(c, "output", "o", "output format")
	// RegisterFlagCompletionFunc fails only if the flag does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return c
}
