package definition

import (
	"maps"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// shellVariable matches a variable as a shell writes it. It does not match an expression in ${{ }}.
var shellVariable = lazyPattern(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// machineVariables are variables that programs usually have. A text may contain other names for the program itself to replace,
// such as the log format of a web server.
var machineVariables = []string{"HOME", "HOSTNAME", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PWD", "PYTHONPATH", "SHELL", "TMPDIR", "USER"}

// shellOperators are the words that only a shell understands.
var shellOperators = []string{"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"}

// unexpanded warns about the syntax of shells in texts that no shell reads: values of variables, the working directory, and
// commands that are lists.
func (w *taskWarnings) unexpanded(task *v1.TaskDefinition, spec proto.Message, at *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(task.GetEnv())) {
		w.unexpandedVariable(task, task.GetEnv()[name], at.Field("env").Key(name),
			"no shell reads the values of env; set it in the command, such as `export "+name+"=...` in its first line")
	}
	inSpec := at.Field("spec")
	if s, ok := spec.(interface{ GetWorkingDirectory() string }); ok {
		p, hint := inSpec.Field("workingDirectory"), "no shell reads it; write the whole path, or `cd` in the command"
		if dir := s.GetWorkingDirectory(); dir == "~" || strings.HasPrefix(dir, "~/") {
			w.Warn(w.locate(p), p, p.Local()+" begins with ~, which is not expanded", hint)
		} else {
			w.unexpandedVariable(task, dir, p, hint)
		}
	}
	words := commandWords(spec, inSpec)
	if len(words) < 2 || shellScript(words) >= 0 || path.Base(words[0].text) == "env" {
		return
	}
	const hint = "a list is one program with its arguments; write the command as a string, which a shell runs"
	for _, word := range words {
		if slices.Contains(shellOperators, word.text) {
			w.Warn(w.locate(word.at), word.at, word.at.Local()+" is "+source.Quote(word.text)+", which the program gets as an argument", hint)
			return
		}
		if w.unexpandedVariable(task, word.text, word.at, hint) {
			return
		}
	}
}

// unexpandedVariable warns about the first variable in a text that the task has, and reports whether it did.
func (w *taskWarnings) unexpandedVariable(task *v1.TaskDefinition, text string, p *source.Path, hint string) bool {
	for _, found := range shellVariable().FindAllStringSubmatchIndex(text, -1) {
		whole := text[found[0]:found[1]]
		name := strings.Trim(whole, "${}")
		if hasVariable(task, name) || slices.Contains(machineVariables, name) || strings.HasPrefix(name, "SWITCHYARD_") {
			w.Warn(w.locateInText(text, found[0], p), p, p.Local()+" has "+source.Quote(whole)+", which is not expanded", hint)
			return true
		}
	}
	return false
}
