package definition

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/interpreter"
)

// argument is a text in a spec with its path.
type argument struct {
	text string
	at   *source.Path
}

// script is a text in a spec that a shell or another interpreter executes.
type script struct {
	argument
	// program is what executes it, or "" if that is not known.
	program string
	// isWhole reports whether the text is the whole command, and not an argument of the program.
	isWhole bool
}

// scripts returns the scripts of a spec: a command that is a string, and those that a list gives to a shell. Lists are also those
// of the containers of a pod, and of the first start of a machine.
func scripts(spec proto.Message, p *source.Path) (all []script) {
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
			all = append(all, script{argument: words[i], program: words[0].text})
		}
	}
	if s, ok := spec.(interpreted); ok && s.GetCommand().GetStringValue() != "" {
		all = append(all, script{argument{s.GetCommand().GetStringValue(), p.Field(string(commandField))}, interpreterOf(s), true})
	}
	return all
}

// interpreterOf returns the program that executes the command of a spec, or "" if it is not known.
func interpreterOf(spec interpreted) string {
	run, err := interpreter.New(spec.GetCommand().GetStringValue(), spec.GetShell())
	if err != nil {
		return ""
	}
	names := run.Names()
	return names[len(names)-1]
}

// commandWords returns the words of a program that starts without a shell, or nil if the command is a string.
func commandWords(spec proto.Message, p *source.Path) []argument {
	s, ok := spec.(interface{ GetCommand() *structpb.Value })
	if !ok || s.GetCommand().GetStringValue() != "" {
		return nil
	}
	var all []argument
	container, isContainer := spec.(*v1.ContainerSpec)
	if isContainer {
		all = appendArguments(all, container.GetEntrypoint(), p.Field(string(entrypointField)))
	}
	all = appendArguments(all, s.GetCommand(), p.Field(string(commandField)))
	if isContainer {
		for i, text := range container.GetArgs() {
			all = append(all, argument{text, p.Field("args").Item(i)})
		}
	}
	return all
}

// appendArguments appends a program, or a list of a program and its arguments.
func appendArguments(all []argument, v *structpb.Value, p *source.Path) []argument {
	if text := v.GetStringValue(); text != "" {
		return append(all, argument{text, p})
	}
	for i, item := range v.GetListValue().GetValues() {
		all = append(all, argument{item.GetStringValue(), p.Item(i)})
	}
	return all
}

// chosenByAuthor reports whether an input of the run, or an input field of the task, can only have values that the definition
// lists or that are not text.
func chosenByAuthor(def *v1.Definition, task *v1.TaskDefinition, ofRun bool, field string) bool {
	if ofRun {
		in := def.GetInputs()[field]
		return len(in.GetEnum()) > 0 || slices.Contains([]string{"number", "integer", "boolean"}, in.GetType())
	}
	switch field {
	case "index", "count":
		return true
	case "item":
		return task.GetInput().GetFields()[field] != nil || task.GetForeach().GetListValue() != nil
	}
	return true // the task's own input contains no expressions
}

// throughEnv returns a hint to pass the value of an expression to a command line as data.
func throughEnv(expression string) string {
	name := variableFor(expression)
	return fmt.Sprintf(`pass it through env, as %s: "${{ %s }}", and write "$%s" here`, name, expression, name)
}

var (
	shellProgram = lazyPattern(`^(.*/)?(ba|da|z|k|a)?sh$`)
	shellCommand = lazyPattern(`^-[a-z]*c$`)
)

// shellScript returns the index of the script in a command that runs a shell, or -1 if there is none.
func shellScript(command []argument) int {
	if len(command) < 3 || !shellProgram().MatchString(command[0].text) {
		return -1
	}
	for i := 1; i+1 < len(command); i++ {
		if shellCommand().MatchString(command[i].text) {
			return i + 1
		}
	}
	return -1
}

// lastName matches the last name in an expression.
var lastName = lazyPattern(`([A-Za-z_][A-Za-z0-9_]*)\W*$`)

// variableFor returns an environment variable name for the value of an expression.
func variableFor(expression string) string {
	found := lastName().FindStringSubmatch(expression)
	if found == nil {
		return "VALUE"
	}
	return strings.ToUpper(found[1])
}
