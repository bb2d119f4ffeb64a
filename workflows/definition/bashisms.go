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

// bashisms warns about commands that sh runs and that use what only bash has.
func (w *taskWarnings) bashisms(task *v1.TaskDefinition, spec proto.Message, p *source.Path) {
	isSet := func(name string) bool { return hasVariable(task, name) }
	for _, script := range scripts(spec, p) {
		sh, text, at := path.Base(script.program), script.text, script.at
		if !slices.Contains([]string{"ash", "dash", "sh"}, sh) {
			continue
		}
		if w.interpreted += len(text); w.interpreted > maxInterpreted {
			return
		}
		uses := bashism.Find(withoutExpressions(text), isSet)
		if len(uses) == 0 {
			continue
		}
		what := make([]string, len(uses))
		for i, use := range uses {
			what[i] = use.What
		}
		remedy := "write spec: { shell: bash }, or defaults: { spec: { shell: bash } } for all tasks"
		switch {
		case !script.isWhole:
			remedy = "write bash in the place of " + script.program
		case interpreter.HasShebang(text):
			remedy = "begin the command with #!/usr/bin/env bash"
		}
		if task.GetType() != v1.TypeShell {
			remedy += ", if the image has bash"
		}
		w.Warn(w.locateInText(text, uses[0].Offset, at), at,
			at.Local()+" runs with "+sh+" and uses "+strings.Join(what, ", ")+", which bash has and many shells named sh lack", remedy)
	}
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
