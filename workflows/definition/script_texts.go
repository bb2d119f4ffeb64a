package definition

import (
	"path"
	"strings"

	"google.golang.org/protobuf/proto"

	"switchyard/workflows/definition/source"
	"switchyard/workflows/interpreter"
)

// lostShebang warns about a #! line that chooses nothing, because it is not where the command begins or because the command is
// given to a program. It reports whether there is one.
func (w *taskWarnings) lostShebang(spec proto.Message, p *source.Path) bool {
	found := false
	for _, script := range scripts(spec, p) {
		offset := shebangOffset(script.text)
		s, isInterpreted := spec.(interpreted)
		isChosen := !script.isWhole || isInterpreted && s.GetShell() != nil
		switch {
		case offset < 0, script.program == "", script.isWhole && offset == 0,
			isChosen && path.Base(script.program) == path.Base(shebangProgram(script.text[offset:])):
			continue
		}
		found = true
		problem, remedy := " is not at the very beginning of it, so ", "remove what is before #!"
		if !script.isWhole {
			problem = " chooses nothing, because "
			remedy = "write the command as one string that begins with #!, or " + path.Base(shebangProgram(script.text[offset:])) + " in the place of " + script.program
		}
		w.Warn(w.locateInText(script.text, offset, script.at), script.at,
			"the #! line of "+script.at.Local()+problem+path.Base(script.program)+" runs the command", remedy)
	}
	return found
}

// shebangOffset returns the offset of a #! line that stands above all commands of a script, or -1 without one.
func shebangOffset(text string) int {
	offset := 0
	for line := range strings.Lines(text) {
		begin := strings.TrimLeft(line, " \t\r\n\ufeff")
		switch {
		case shebangProgram(begin) != "":
			return offset + len(line) - len(begin)
		case begin != "" && begin[0] != '#':
			return -1
		}
		offset += len(line)
	}
	return -1
}

// shebangProgram returns the program that the #! line at the start of a text chooses, or "" if the line is a mere comment.
func shebangProgram(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if !interpreter.HasShebang(line) {
		return ""
	}
	run, err := interpreter.New(line, nil)
	if err != nil {
		return ""
	}
	names := run.Names()
	if !path.IsAbs(names[0]) && !interpreter.IsKnown(names[0]) {
		return ""
	}
	return names[len(names)-1]
}

// lineEnds warns about a command with the line ends of Windows that a shell runs: the shell takes \r as a part of the last word.
func (w *taskWarnings) lineEnds(spec proto.Message, p *source.Path) {
	for _, script := range scripts(spec, p) {
		name := path.Base(script.program)
		if at := strings.Index(script.text+"\n", "\r\n"); at >= 0 && shellProgram().MatchString(name) {
			w.Warn(w.locateInText(script.text, at, script.at), script.at,
				script.at.Local()+` has the line ends of Windows (\r\n), and `+name+` takes \r as a part of the last word of a line`, `end lines with \n alone`)
		}
	}
}
