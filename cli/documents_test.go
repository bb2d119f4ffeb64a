package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"switchyard/cli/config"
	"switchyard/docs/site"
)

// documents returns the documents of the repository that show commands, with their paths from its root.
func documents(t *testing.T) []*site.Page {
	t.Helper()
	read, _, err := site.Read(os.DirFS("../docs"))
	if err != nil {
		t.Fatal(err)
	}
	var pages []*site.Page
	for name, page := range read {
		if page.Path = "docs/" + name; name != "cli.md" {
			pages = append(pages, page)
		}
	}
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, site.Parse(name, text))
	}
	return pages
}

// TestCommandsOfDocumentsExist checks the commands in the documents, whether other tests run them or not: each has a known name,
// known flags with values of their types, and as many arguments as it takes.
func TestCommandsOfDocumentsExist(t *testing.T) {
	scripts, mentions := 0, 0
	for _, page := range documents(t) {
		for _, f := range page.Fences {
			at := fmt.Sprintf("%s:%d", page.Path, f.Line)
			if f.Language == "" {
				t.Errorf("%s: a fence has no language, so nothing checks it; write sh, yaml, json or text", at)
			}
			if f.Language != "sh" {
				continue
			}
			if f.Info != "" && !regexp.MustCompile(`^not-run: .`).MatchString(f.Info) {
				t.Errorf("%s: ```sh %s: write nothing, or not-run: and the reason", at, f.Info)
			}
			script, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(f.Text), at)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			syntax.Walk(script, func(n syntax.Node) bool {
				call, ok := n.(*syntax.CallExpr)
				if !ok {
					return true
				}
				if args := commandArguments(call); args != nil {
					scripts++
					if err := checkCommand(args); err != nil {
						t.Errorf("%s: switchyard %s: %v", at, strings.Join(args, " "), err)
					}
				}
				return true
			})
		}
		for _, code := range page.Codes {
			if rest, ok := strings.CutPrefix(code, "switchyard "); ok {
				mentions++
				if err := checkMention(strings.Fields(rest)); err != nil {
					t.Errorf("%s: `%s`: %v", page.Path, code, err)
				}
			}
		}
	}
	if scripts < 50 || mentions < 20 {
		t.Errorf("only %d commands and %d mentions were checked", scripts, mentions)
	}
}

// variable stands for a word that the shell expands.
const variable = "$"

// commandArguments returns the words after switchyard in a call, or nil if it calls something else.
func commandArguments(call *syntax.CallExpr) []string {
	words := make([]string, 0, len(call.Args))
	for _, word := range call.Args {
		text := word.Lit()
		if text == "" {
			text = quotedText(word)
		}
		words = append(words, text)
	}
	at := slices.IndexFunc(words, func(word string) bool { return word == "switchyard" || strings.HasSuffix(word, "/switchyard") })
	if at > 0 && words[at-1] == "-u" { // the user of sudo
		at += 1 + slices.Index(words[at+1:], "switchyard")
	}
	if at < 0 || at > 0 && !slices.Contains([]string{"sudo", "env", "exec", "time", "timeout", "nohup"}, words[0]) {
		return nil
	}
	return words[at+1:]
}

// quotedText returns the text of a word, with variable in place of what the shell expands.
func quotedText(word *syntax.Word) string {
	var text strings.Builder
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			text.WriteString(n.Value)
		case *syntax.SglQuoted:
			text.WriteString(n.Value)
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
			text.WriteString(variable)
			return false
		}
		return true
	})
	return text.String()
}

// checkCommand checks the arguments of a command as the program would, up to its call.
func checkCommand(args []string) error {
	root := newRoot(&system{})
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		if strings.Contains(err.Error(), `"$"`) { // a value that is known when the script runs
			return nil
		}
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// checkMention checks a command within a text. Its names and flags must exist; its arguments may be placeholders, and it may
// end before them. Names with a bar between them are alternatives.
func checkMention(words []string) error {
	cmd := newRoot(&system{})
	cmd.InitDefaultCompletionCmd()
	for i, word := range words {
		name, isFlag := strings.CutPrefix(strings.Trim(word, "[]"), "--")
		switch {
		case isFlag:
			name, _, _ = strings.Cut(name, "=")
			if cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && name != "help" && name != "version" && name != "" {
				return fmt.Errorf("%s has no flag --%s", cmd.CommandPath(), name)
			}
		case cmd.HasSubCommands() && regexp.MustCompile(`^[a-z|-]+$`).MatchString(word) && !strings.HasPrefix(word, "-"):
			var found *cobra.Command
			for alternative := range strings.SplitSeq(word, "|") {
				at := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == alternative || c.HasAlias(alternative) })
				if at < 0 {
					return fmt.Errorf("%s has no command %s", cmd.CommandPath(), alternative)
				}
				found = cmd.Commands()[at]
			}
			cmd = found
		case i == 0 && word == "COMMAND":
			return nil
		}
	}
	return nil
}

// TestSettingsOfDocumentsAreKnown checks the settings files in the documents: each command finds names and values that it accepts.
func TestSettingsOfDocumentsAreKnown(t *testing.T) {
	for _, page := range documents(t) {
		for _, f := range page.Fences {
			if f.Language != "yaml" || f.Info != "settings" {
				continue
			}
			file := filepath.Join(t.TempDir(), "switchyard.yaml")
			if err := os.WriteFile(file, []byte(f.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := checkSettings(newRoot(&system{}), file); err != nil {
				t.Errorf("%s:%d: %v", page.Path, f.Line, err)
			}
		}
	}
}

// checkSettings checks a settings file with every command below one.
func checkSettings(cmd *cobra.Command, file string) error {
	if !cmd.HasSubCommands() {
		cmd.InheritedFlags()
		if err := cmd.Flags().Set(config.Flag, file); err != nil {
			return err
		}
		_, err := config.Apply(cmd, func(string) string { return "" })
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := checkSettings(sub, file); err != nil {
			return err
		}
	}
	return nil
}

// TestChecksOfDocumentsFindFaults shows what the tests above refuse.
func TestChecksOfDocumentsFindFaults(t *testing.T) {
	for _, args := range []string{"runs", "runs get last build", "run FILE --input a=b -o json", "runs logs $ --tail $"} {
		if err := checkCommand(strings.Fields(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, args := range []string{"rusn get last", "runs get", "runs get last --color", "worker --max-parallel many"} {
		if err := checkCommand(strings.Fields(args)); err == nil {
			t.Errorf("%s has no fault", args)
		}
	}
	for mention, isSound := range map[string]bool{
		"runs approve|reject RUN [--reason TEXT]": true, "COMMAND --help": true, "vps": true, "run --keep": false, "runs aprove RUN": false, "runs get --frobnicate": false,
	} {
		if err := checkMention(strings.Fields(mention)); (err == nil) != isSound {
			t.Errorf("%s: %v", mention, err)
		}
	}
	for text, isSound := range map[string]bool{"gateway: http://yard:7280\nworker: { maxParallel: 8 }": true, "worker: { maxParalel: 8 }": false, "worker: { maxParallel: many }": false} {
		file := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkSettings(newRoot(&system{}), file); (err == nil) != isSound {
			t.Errorf("%s: %v", text, err)
		}
	}
}
