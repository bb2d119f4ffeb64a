package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/config"
	"switchyard/cli/exit"
	"switchyard/dev/golden"
)

// TestReferenceOfCommands checks that docs/cli.md is what the commands say. The flag -update writes it.
func TestReferenceOfCommands(t *testing.T) {
	golden.Check(t, "../docs/cli.md", commandReference())
}

// clientFlags are the flags of all commands that call a gateway.
var clientFlags = []string{gatewayFlagName, tokenFileFlagName, caFlagName, clientCertFlagName, clientKeyFlagName}

// commandReference returns the reference of all commands.
func commandReference() string {
	root := newRoot(&system{getenv: func(string) string { return "" }})
	root.InitDefaultCompletionCmd()
	w := &commandWriter{}
	w.f("# Commands\n\n<!-- Written from the commands by dev/generate.sh. Do not edit. -->\n\n")
	w.f("This page lists every command with its flags. `switchyard COMMAND --help` prints the same.\n\n")
	w.f("## Exit codes\n\n| Code | Meaning |\n|---|---|\n")
	for _, c := range []struct {
		code    int
		meaning string
	}{
		{exit.CodeDone, "the command has done what it was asked to do"},
		{exit.CodeNotDone, "the run did not complete, or its state does not allow the request"},
		{exit.CodeUsage, "bad usage, a bad definition, or an unknown name"},
		{exit.CodeSystem, "the system could not be reached, or it failed"},
		{exit.CodeNotAllowed, "the caller lacks the permission"},
		{exit.CodeInterrupted, "a signal ended the command, which first cancelled a run of its own"},
		{exit.CodeLost, "a session with a program was left or lost; otherwise such a command exits with the code of the program"},
	} {
		w.f("| %d | %s |\n", c.code, c.meaning)
	}
	w.f("\n## Settings\n\n")
	_, long, _ := strings.Cut(root.Long, "\n\n")
	long, _, _ = strings.Cut(long, "\n\nExit codes:")
	w.prose(long)
	w.f("\n## Flags of every command\n\n")
	w.flags(root.PersistentFlags(), nil)
	w.f("\n## Flags of a client\n\nCommands that call a gateway have these flags besides their own.\n\n")
	runs, _, err := root.Find([]string{"runs", "get"})
	if err != nil {
		panic(err)
	}
	w.flags(runs.Flags(), func(f *pflag.Flag) bool { return slices.Contains(clientFlags, f.Name) })
	w.commands(root)
	return w.String()
}

type commandWriter struct{ strings.Builder }

func (w *commandWriter) f(format string, values ...any) { fmt.Fprintf(&w.Builder, format, values...) }

// commands writes the sections of the commands below one.
func (w *commandWriter) commands(parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		w.f("\n%s %s\n\n", strings.Repeat("#", min(len(strings.Fields(cmd.CommandPath())), 3)), cmd.CommandPath())
		if cmd.Long == "" || parent.Name() == "completion" { // cobra's own text, which is long and about its shell
			w.f("%s.\n", markdownText(cmd.Short))
		} else {
			w.prose(cmd.Long)
		}
		if cmd.Runnable() && !cmd.HasSubCommands() {
			w.f("\n```text\n%s\n```\n", cmd.UseLine())
			w.ownFlags(cmd)
		}
		if cmd.Example != "" {
			w.f("\n```text\n%s\n```\n", cmd.Example)
		}
		if cmd.HasAvailableSubCommands() {
			w.f("\n| Command | |\n|---|---|\n")
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() {
					w.f("| [%s](#%s) | %s |\n", sub.Name(), strings.ReplaceAll(sub.CommandPath(), " ", "-"), tableText(sub.Short))
				}
			}
			w.commands(cmd)
		}
	}
}

// ownFlags writes the flags of a command, those of a client in one line.
func (w *commandWriter) ownFlags(cmd *cobra.Command) {
	isClient := cmd.Flags().Lookup(caFlagName) != nil
	isOwn := func(f *pflag.Flag) bool {
		return !f.Hidden && f.Name != "help" && (f.Name == gatewayFlagName && cmd.Flags().Lookup(gatewayFlagName).Usage != clientUsage() || !slices.Contains(clientFlags, f.Name))
	}
	own := false
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { own = own || isOwn(f) })
	if isClient {
		w.f("\nThe [flags of a client](#flags-of-a-client)")
		if own {
			w.f(", and:")
		} else {
			w.f(".")
		}
		w.f("\n")
	}
	if own {
		w.f("\n")
		w.flags(cmd.LocalNonPersistentFlags(), isOwn)
	}
}

// clientUsage returns the usage of --gateway of most commands.
func clientUsage() string {
	cmd := &cobra.Command{}
	clientFlag(cmd)
	return cmd.Flags().Lookup(gatewayFlagName).Usage
}

// flags writes a table of the flags of a set for which isShown returns true.
func (w *commandWriter) flags(set *pflag.FlagSet, isShown func(*pflag.Flag) bool) {
	w.f("| Flag | Environment | Meaning |\n|---|---|---|\n")
	set.VisitAll(func(f *pflag.Flag) {
		if isShown != nil && !isShown(f) {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		w.f("| `%s` | `%s` | %s |\n", strings.ReplaceAll(name, "|", `\|`), config.Variable(f.Name), tableText(usage))
	})
}

// laidOut matches a line whose place on the screen matters.
var laidOut = regexp.MustCompile(`^\s|\S  +\S`)

// prose writes a help text. Paragraphs with columns or indented lines stay as they are.
func (w *commandWriter) prose(text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			w.f("\n")
		}
		if slices.ContainsFunc(strings.Split(paragraph, "\n"), laidOut.MatchString) {
			w.f("```text\n%s\n```\n", paragraph)
		} else {
			w.f("%s\n", markdownText(paragraph))
		}
	}
}

// markdownText escapes what Markdown would read as markup.
func markdownText(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "](", `]\(`).Replace(text)
}

// tableText returns a text for a cell of a table.
func tableText(text string) string { return strings.ReplaceAll(markdownText(text), "|", `\|`) }
