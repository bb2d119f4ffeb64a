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

// shellRun is a script that a shell runs.
type shellRun struct {
	shell  string
	script argument
	// remedy is what to write so that bash runs the script.
	remedy string
}

// bashisms warns about commands that sh runs and that use what only bash has.
func (w *taskWarnings) bashisms(task *v1.TaskDefinition, spec proto.Message, p *source.Path) {
	isSet := func(name string) bool {
		_, plain := task.GetEnv()[name]
		_, secret := task.GetSecretEnv()[name]
		return plain || secret
	}
	for _, run := range shellRuns(spec, p) {
		sh, text, at := path.Base(run.shell), run.script.text, run.script.at
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
		remedy := run.remedy
		if task.GetType() != v1.TypeShell {
			remedy += ", if the image has bash"
		}
		w.Warn(w.locateInText(text, uses[0].Offset, at), at,
			at.Local()+" runs with "+sh+" and uses "+strings.Join(what, ", ")+", which bash has and many shells named sh lack", remedy)
	}
}

// shellRuns returns the scripts of a spec with the programs that run them.
func shellRuns(spec proto.Message, p *source.Path) (runs []shellRun) {
	lists := [][]argument{commandWords(spec, p)}
	switch s := spec.(type) {
	case *v1.VpsSpec:
		var init []argument
		for i, text := range s.GetInit() {
			init = append(init, argument{text, p.Field("init").Item(i)})
		}
		lists = append(lists, init)
	case *v1.K8SJobSpec:
		pod, at := s.GetTemplate().GetFields()["spec"].GetStructValue().GetFields(), p.Field("template").Key("spec")
		for _, kind := range []string{"containers", "initContainers"} {
			for i, container := range pod[kind].GetListValue().GetValues() {
				fields, inContainer := container.GetStructValue().GetFields(), at.Key(kind).Item(i)
				lists = append(lists, appendArguments(appendArguments(nil, fields["command"], inContainer.Key("command")), fields["args"], inContainer.Key("args")))
			}
		}
	}
	for _, words := range lists {
		if i := shellScript(words); i >= 0 {
			runs = append(runs, shellRun{words[0].text, words[i], "write bash in the place of " + words[0].text})
		}
	}
	s, ok := spec.(interpreted)
	if !ok || s.GetCommand().GetStringValue() == "" {
		return runs
	}
	text, remedy := s.GetCommand().GetStringValue(), "write spec: { shell: bash }, or defaults: { spec: { shell: bash } } for all tasks"
	if interpreter.HasShebang(text) {
		remedy = "begin the command with #!/usr/bin/env bash"
	}
	return append(runs, shellRun{programOf(spec, p), argument{text, p.Field(string(commandField))}, remedy})
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
