package cli

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestHelpFitsATerminal(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		got := run(t, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		if got.code != 0 || !strings.Contains(got.stdout, "Usage:") {
			t.Errorf("%s: %+v", cmd.CommandPath(), got)
		}
		for line := range strings.Lines(got.stdout) {
			if width := ansi.StringWidth(strings.TrimSuffix(line, "\n")); width > helpWidth {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), width, line)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			// pflag would show backquoted text in place of a flag's type.
			if strings.Contains(f.Usage, "`") {
				t.Errorf("%s: the help of --%s has backquotes: %s", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&system{}))
}
