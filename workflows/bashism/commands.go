package bashism

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// commands are commands of bash that POSIX does not have and that are not likely to be programs.
var commands = []string{"builtin", "caller", "compgen", "compopt", "dirs", "disown", "mapfile", "popd", "pushd", "readarray", "shopt", "source"}

// options are the options of commands that bash has beyond POSIX, without those that most shells named sh have, too.
var options = map[string]*regexp.Regexp{
	"echo":     regexp.MustCompile(`^-[neE]*[eE][neE]*$`),
	"exec":     regexp.MustCompile(`^-[acl]+$`),
	"export":   regexp.MustCompile(`^-[fn]+$`),
	"hash":     regexp.MustCompile(`^-[dlpt]+$`),
	"kill":     regexp.MustCompile(`^-SIG`),
	"local":    regexp.MustCompile(`^[-+][a-zA-Z]`),
	"printf":   regexp.MustCompile(`^-v$`),
	"read":     regexp.MustCompile(`^-[a-z]*[aAdeinNstu]`),
	"readonly": regexp.MustCompile(`^-[aAf]+$`),
	"trap":     regexp.MustCompile(`^-[lp]+$`),
	"type":     regexp.MustCompile(`^-[aptPf]+$`),
	"unset":    regexp.MustCompile(`^-n$`),
	"wait":     regexp.MustCompile(`^-[nfp]+$`),
}

// setOptions are the options of set -o that shells have without being bash.
var setOptions = []string{
	"allexport", "emacs", "errexit", "ignoreeof", "interactive", "monitor", "noclobber", "noexec", "noglob", "nolog", "notify", "nounset", "stdin", "verbose", "vi", "xtrace",
}

// call notes what a simple command uses.
func (f *finder) call(args []*syntax.Word) {
	if len(args) == 0 {
		return
	}
	name := args[0].Lit()
	if slices.Contains(commands, name) {
		f.add(args[0].Pos(), name)
	}
	f.options(name, args[1:])
	switch name {
	case "set":
		f.set(args[1:])
	case "test", "[":
		f.test(args)
	case "trap":
		f.trap(args[1:])
	case "kill":
		if len(args) > 2 && args[1].Lit() == "-s" && strings.HasPrefix(args[2].Lit(), "SIG") {
			f.add(args[2].Pos(), "kill -s "+args[2].Lit())
		}
	case "printf":
		if len(args) > 1 {
			format := strings.ReplaceAll(f.text(args[1]), "%%", "")
			f.addIf(strings.Contains(format, "%q"), args[1].Pos(), "printf %q")
		}
	case "read":
		isOption := func(word *syntax.Word) bool { return strings.HasPrefix(word.Lit(), "-") }
		f.addIf(!slices.ContainsFunc(args[1:], func(word *syntax.Word) bool { return !isOption(word) }), args[0].Pos(), "read without a variable")
	}
}

// options notes the first option of a command that only bash has.
func (f *finder) options(name string, words []*syntax.Word) {
	pattern := options[name]
	for _, word := range words {
		switch text := word.Lit(); {
		case pattern == nil, !strings.HasPrefix(text, "-"), text == "--":
			return
		case pattern.MatchString(text):
			f.add(word.Pos(), name+" "+text)
			return
		}
	}
}

// set notes the options of set.
func (f *finder) set(words []*syntax.Word) {
	for i := 0; i < len(words); i++ {
		text := words[i].Lit()
		if len(text) < 2 || text[0] != '-' && text[0] != '+' || text == "--" {
			return
		}
		if at := strings.IndexAny(text, "BEHPT"); at >= 0 {
			f.add(words[i].Pos(), "set -"+text[at:at+1])
		}
		if strings.Contains(text, "o") && i+1 < len(words) {
			i++
			option := words[i].Lit()
			isKnown := option == "" || slices.Contains(setOptions, option) || option == pipefail && f.probesPipefail
			f.addIf(!isKnown, words[i].Pos(), "set -o "+option)
		}
	}
}

const pipefail = "pipefail"

// test notes the operators of test and [.
func (f *finder) test(args []*syntax.Word) {
	for i, word := range args[1:] {
		switch text := word.Lit(); {
		case i > 0 && (text == "==" || text == "=~"):
			f.add(word.Pos(), text+" in [ ]")
		case i == 0 && text == "-v" && len(args) > 2 && f.text(args[2]) != "]":
			f.add(word.Pos(), "[ -v ]")
		}
	}
}

// trap notes the signals of a trap.
func (f *finder) trap(words []*syntax.Word) {
	for _, word := range words[min(1, len(words)):] {
		text := word.Lit()
		isOfBash := text == "ERR" || text == "DEBUG" || text == "RETURN" || strings.HasPrefix(text, "SIG")
		f.addIf(isOfBash, word.Pos(), "trap ... "+text)
	}
}

// declaration notes what a command that declares variables uses.
func (f *finder) declaration(n *syntax.DeclClause) {
	name := n.Variant.Value
	if name != "export" && name != "local" && name != "readonly" {
		f.add(n.Pos(), name)
		return
	}
	var words []*syntax.Word
	for _, argument := range n.Args {
		if argument.Name == nil {
			words = append(words, argument.Value)
		}
	}
	f.options(name, words)
}

// text returns a word as it is written.
func (f *finder) text(word *syntax.Word) string {
	return f.script[word.Pos().Offset():word.End().Offset()]
}
