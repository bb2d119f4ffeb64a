package interpreter

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// File is the name of the file that holds the text of a command.
const File = "script"

// Program runs the text of a command.
type Program struct {
	// argv is the interpreter with its own arguments.
	argv []string
	text string
	// inFile is set if the interpreter reads the text from a file, rather than from its last argument. sourced is set if the last
	// argument makes a shell read that file.
	inFile, sourced bool
	// choice names what chose the interpreter, or is "" for the default.
	choice string
}

// New returns the program for a text. shell is a list or a word, or nil for the default. A first line that begins with #! takes
// precedence over shell. A shell that takes the text as an argument reads a longer text from a file. An error is a *ShellError.
func New(text string, shell *structpb.Value) (Program, error) {
	p, err := newProgram(text, shell)
	if p.isTooLong() && slices.Contains(shells, path.Base(p.argv[0])) {
		last := p.argv[len(p.argv)-1]
		p.inFile = strings.HasPrefix(last, "-") && !strings.HasPrefix(last, "--") && strings.HasSuffix(last, "c")
		p.sourced = p.inFile
	}
	return p, err
}

// isTooLong reports whether the text is an argument, and too long for one.
func (p Program) isTooLong() bool { return !p.inFile && len(p.text) > MaxArgument && len(p.argv) > 0 }

func newProgram(text string, shell *structpb.Value) (Program, error) {
	if argv := shebang(text); argv != nil {
		return Program{argv: argv, text: text, inFile: true, choice: "the #! line"}, nil
	}
	var p Program
	var err error
	switch kind := shell.GetKind().(type) {
	case nil, *structpb.Value_NullValue:
		return ofWord(defaultWord, text)
	case *structpb.Value_StringValue:
		if p, err = ofWord(kind.StringValue, text); kind.StringValue == defaultWord {
			return p, nil
		}
	case *structpb.Value_ListValue:
		p, err = ofList(kind.ListValue.GetValues(), text)
	default:
		err = &ShellError{"is neither a word nor a list of strings", listHint}
	}
	p.choice = "spec.shell"
	return p, err
}

// shebang returns the interpreter and its argument, if it has one, that the first line of a text names, or nil if it names none.
func shebang(text string) []string {
	line, _, _ := strings.Cut(text, "\n")
	line, is := strings.CutPrefix(line, "#!")
	line = strings.Trim(line, " \t\r")
	if !is || line == "" {
		return nil
	}
	if at := strings.IndexAny(line, " \t"); at >= 0 {
		return []string{line[:at], strings.TrimLeft(line[at:], " \t")}
	}
	return []string{line}
}

// HasShebang reports whether the first line of a text names its interpreter.
func HasShebang(text string) bool { return shebang(text) != nil }

// InFile returns the text that the interpreter reads from a file, or "" if the text is an argument.
func (p Program) InFile() string {
	if !p.inFile {
		return ""
	}
	return p.text
}

// Choice names what chose the interpreter, to stand before a verb, or is "" for the default.
func (p Program) Choice() string { return p.choice }

// Argv returns the interpreter and its arguments, which end with args, the arguments of the text. file is the path of the file
// that holds the text, if InFile returns one.
func (p Program) Argv(file string, args []string) []string {
	argv := slices.Clone(p.argv)
	text := p.text
	switch {
	case p.sourced: // unlike a shell that is started with the file, it keeps $0
		text = ". '" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	case p.inFile:
		return append(append(argv, file), args...)
	}
	argv = append(argv, text)
	if name := path.Base(argv[0]); len(args) > 0 && slices.Contains(shells, name) {
		argv = append(argv, name) // $0, so that the arguments are $1 and so on
	}
	return append(argv, args...)
}

// shells are the programs that take $0 before the arguments of a text.
var shells = []string{"ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"}

// known are the interpreters that nodes look for, without the version that may follow.
var known = []string{
	"awk", "bash", "bun", "dash", "deno", "elixir", "expect", "fish", "gawk", "groovy", "guile", "julia", "ksh", "lua", "make", "node",
	"perl", "php", "pwsh", "python", "Rscript", "ruby", "tclsh", "uv", "xonsh", "zsh",
}

// IsKnown reports whether nodes look for an interpreter, such as bash or python3.11.
func IsKnown(name string) bool {
	return slices.Contains(known, strings.TrimRight(name, "0123456789."))
}

// Names returns the programs that must exist for the command to start: the interpreter, and the program that it starts if it is
// env.
func (p Program) Names() []string {
	if name := startedByEnv(p.argv); name != "" {
		return []string{p.argv[0], name}
	}
	return p.argv[:1:1]
}

// Wanted returns the names of the interpreters that a node must have according to its own search, which covers known ones alone.
func (p Program) Wanted() (wanted []string) {
	for _, name := range p.Names() {
		if dir, base := path.Split(name); (dir == "" || dir == "/bin/" || dir == "/usr/bin/") && IsKnown(base) {
			wanted = append(wanted, base)
		}
	}
	return wanted
}

// startedByEnv returns the program that env starts, or "" if argv does not start env or sets options other than -S.
func startedByEnv(argv []string) string {
	if path.Base(argv[0]) != "env" || len(argv) < 2 {
		return ""
	}
	rest := argv[1:]
	if split, is := strings.CutPrefix(rest[0], "-S"); is {
		rest = append(strings.Fields(split), rest[1:]...)
	}
	for _, word := range rest {
		switch name, _, sets := strings.Cut(word, "="); {
		case strings.HasPrefix(word, "-"), name == "PATH", strings.ContainsAny(word, `$"'\`):
			return ""
		case !sets:
			return word
		}
	}
	return ""
}
