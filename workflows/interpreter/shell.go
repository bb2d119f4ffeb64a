package interpreter

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/nearest"
)

var words = []string{"bash", "node", "pwsh", "python", defaultWord}

const defaultWord = "sh"

// Words returns the shells that a word names.
func Words() []string { return slices.Clone(words) }

// ShellError reports a value of spec.shell that names no shell.
type ShellError struct {
	// Fault follows the name of the field.
	Fault, Hint string
}

// Error returns the fault and the remedy.
func (e *ShellError) Error() string { return "shell " + e.Fault + "; " + e.Hint }

const listHint = "write one of bash, node, pwsh, python and sh, or a list such as [zsh, -c], to which the command is appended"

// ofWord returns the program for a text and the word of a shell.
func ofWord(word, text string) (Program, error) {
	p := Program{text: text}
	switch word {
	case defaultWord:
		p.argv = []string{"sh", "-c"}
		if strings.Contains(strings.TrimSpace(text), "\n") {
			// A script of several lines stops at the first command that fails, so that nothing is deployed after a failed cd.
			p.argv[1] = "-ec"
		}
	case "bash":
		p.argv = []string{"bash", "-eo", "pipefail", "-c"}
	case "python":
		p.argv, p.inFile = []string{"python3"}, true
	case "node":
		p.argv, p.inFile = []string{"node"}, true
	case "pwsh":
		// As in GitHub Actions, the script ends at the first error, and its exit code is that of its last program.
		p.argv = []string{"pwsh", "-NoProfile", "-NonInteractive", "-Command"}
		p.text = "$ErrorActionPreference = 'stop'\n" + text + "\nif (Test-Path -LiteralPath variable:LASTEXITCODE) { exit $LASTEXITCODE }"
	default:
		return p, unknownWord(word)
	}
	return p, nil
}

// unknownWord returns the error of a word that names no shell.
func unknownWord(word string) *ShellError {
	fields := slices.DeleteFunc(strings.Fields(word), func(field string) bool { return field == "{0}" })
	if len(fields) == 0 {
		return &ShellError{"is empty", listHint}
	}
	name := path.Base(fields[0])
	if len(fields) > 1 || name != word || slices.Contains(shells, name) || IsKnown(name) {
		if flag := textFlag(name); !strings.HasPrefix(fields[len(fields)-1], "-") || !strings.HasSuffix(fields[len(fields)-1], flag) {
			fields = append(fields, "-"+flag)
		}
		return &ShellError{fmt.Sprintf("is %q, which is not a word for a shell", word), "write a list, to which the command is appended: [" + strings.Join(fields, ", ") + "]"}
	}
	return &ShellError{fmt.Sprintf("is %q, which is not a word for a shell", word), cmp.Or(nearest.DidYouMean(word, words), listHint)}
}

// ValueFor returns the value of spec.shell, as it is written in YAML, for the name of an interpreter, or "" for other names.
func ValueFor(name string) string {
	switch name {
	case "python3", "py":
		name = "python"
	case "nodejs", "javascript", "js":
		name = "node"
	case "powershell":
		name = "pwsh"
	}
	switch {
	case slices.Contains(words, name):
		return name
	case slices.Contains(shells, name), slices.Contains([]string{"fish", "perl", "php", "ruby", "xonsh"}, name):
		return "[" + name + ", -" + textFlag(name) + "]"
	}
	return ""
}

// textFlag returns the letter of the flag with which an interpreter takes a text as an argument.
func textFlag(name string) string {
	switch {
	case slices.Contains(shells, name), strings.HasPrefix(name, "python"), name == "fish", name == "xonsh":
		return "c"
	case strings.HasPrefix(name, "php"):
		return "r"
	}
	return "e"
}

// ofList returns the program for a text and a list, to which the text is appended.
func ofList(list []*structpb.Value, text string) (Program, error) {
	p := Program{text: text}
	for i, item := range list {
		word := item.GetStringValue()
		if _, isText := item.GetKind().(*structpb.Value_StringValue); !isText || i == 0 && word == "" || strings.ContainsRune(word, 0) {
			return p, &ShellError{fmt.Sprintf("has an item that cannot be used, number %d", i+1), listHint}
		}
		p.argv = append(p.argv, word)
	}
	if len(p.argv) == 0 {
		return p, &ShellError{"is empty", listHint}
	}
	return p, nil
}
