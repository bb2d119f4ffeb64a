package definition

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/bashism"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/interpreter"
)

// maxInterpreted limits the bytes of commands that are looked through for bashisms: aliases can repeat a command without end.
const maxInterpreted = 1 << 20

// bashisms warns about a command that sh runs and that uses what only bash has.
func (w *taskWarnings) bashisms(task *v1.TaskDefinition, spec proto.Message, p *source.Path) {
	sh, remedy := shOf(spec, p)
	if sh == "" {
		return
	}
	if task.GetType() != v1.TypeShell {
		remedy += ", if the image has bash"
	}
	for _, script := range scripts(spec, p) {
		if w.interpreted += len(script.text); w.interpreted > maxInterpreted {
			return
		}
		uses := bashism.Find(withoutExpressions(script.text), func(name string) bool {
			_, plain := task.GetEnv()[name]
			_, secret := task.GetSecretEnv()[name]
			return plain || secret
		})
		if len(uses) == 0 {
			continue
		}
		what := make([]string, len(uses))
		for i, use := range uses {
			what[i] = use.What
		}
		w.Warn(w.locateInText(script.text, uses[0].Offset, script.at), script.at,
			script.at.Local()+" runs with "+sh+" and uses "+strings.Join(what, ", ")+", which bash has and many shells named sh lack", remedy)
	}
}

// shOf returns the name of the plain shell that runs the command of a spec, and what to write so that bash runs it. The name is ""
// if another program runs the command.
func shOf(spec proto.Message, p *source.Path) (name, remedy string) {
	remedy = "write spec: { shell: bash }, or defaults: { spec: { shell: bash } } for all tasks"
	program := programOf(spec, p)
	if commandWords(spec, p) != nil {
		remedy = "write bash in the place of " + program
	} else if s, ok := spec.(interpreted); ok && interpreter.HasShebang(s.GetCommand().GetStringValue()) {
		remedy = "begin the command with #!/usr/bin/env bash"
	}
	if name = path.Base(program); !slices.Contains([]string{"ash", "dash", "sh"}, name) {
		return "", ""
	}
	return name, remedy
}

// withoutExpressions returns a text with digits in the place of its expressions, so that all other bytes keep their offsets.
func withoutExpressions(text string) string {
	t, err := condition.ParseTemplate(text)
	if err != nil {
		return text // the check of templates reports it
	}
	b := []byte(text)
	for offset, expression := range t.Places() {
		copy(b[offset:], strings.Repeat("1", len("${{")+len(expression)+len("}}")))
	}
	return string(b)
}
