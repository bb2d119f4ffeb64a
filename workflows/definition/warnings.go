package definition

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// taskWarnings warns about fields of tasks that are allowed but hardly mean what the author intends.
type taskWarnings struct {
	*decoder
	// inCommands is the number of expressions in command lines checked so far.
	inCommands int
	// interpreted is the number of bytes of commands looked through for bashisms so far.
	interpreted int
	// outcomes says how the tasks end, or is nil before the first use.
	outcomes *outcomes
}

// check warns about fields of a task that are allowed but hardly mean what the author intends.
func (w *taskWarnings) check(def *v1.Definition, task *v1.TaskDefinition, spec proto.Message, at *source.Path) {
	w.waitsForMachine(def, task, at)
	w.neverTriggered(def, task, at)
	w.unreplaced(task, at)
	w.unsetInJob(task, at)
	w.unexpanded(task, spec, at)
	w.commandLines(def, task, spec, at.Field("spec"))
	w.lineEnds(spec, at.Field("spec"))
	if !w.lostShebang(spec, at.Field("spec")) {
		w.bashisms(task, spec, at.Field("spec"))
	}
}

// foreignTemplate matches an expression in the braces of other systems. It does not match the Go templates that some programs
// take, such as {{.Name}}.
var foreignTemplate = lazyPattern(`(?:^|[^$])(\{\{-?\s*((?:inputs?|parent|workflow|context|item|matrix|params|parameters|args|steps|tasks|needs|outputs|env|vars|secrets)\b[^{}]*?)-?\}\})`)

// foreignNames are the names by which expressions of other systems begin, each with ours. The first one that fits applies.
var foreignNames = []struct{ foreign, own string }{
	{"inputs.parameters.", "workflow.input."}, {"workflow.parameters.", "workflow.input."}, {"inputs.", "workflow.input."},
	{"workflow.status", "run.state"}, {"workflow.failures", "run.failed"},
}

// unreplaced warns about {{ }} in the texts of a task, because nothing replaces it.
func (w *taskWarnings) unreplaced(task *v1.TaskDefinition, at *source.Path) {
	for p, text := range templateTexts(task, at) {
		w.unreplacedText(text, p)
	}
	for p, text := range texts(structpb.NewStructValue(task.GetInput()), at.Field("input")) {
		w.unreplacedText(text, p)
	}
}

// unsetInJob warns about texts of a Job that name folders and files of a node, because a command such as
// "rm -rf $SWITCHYARD_LOCAL_TEMP_DIR/" is then about another folder.
func (w *taskWarnings) unsetInJob(task *v1.TaskDefinition, at *source.Path) {
	if !v1.IsRemote(task.GetType()) {
		return
	}
	for p, text := range templateTexts(task, at) {
		for _, name := range []string{v1.SharedDirVariable, "SWITCHYARD_LOCAL_TEMP_DIR", "SWITCHYARD_CHECKPOINT"} {
			if v1.NamesVariable(text, name) {
				w.Warn(w.locateInText(text, strings.Index(text, name), p), p, p.Local()+" names $"+name+", which is not set in a Job", "mount a volume at a path of your choice, and write the path")
			}
		}
	}
}

func (w *taskWarnings) unreplacedText(text string, p *source.Path) {
	for _, found := range foreignTemplate().FindAllStringSubmatchIndex(text, -1) {
		whole, expression := text[found[2]:found[3]], strings.TrimSpace(text[found[4]:found[5]])
		for _, name := range foreignNames {
			if rest, ok := strings.CutPrefix(expression, name.foreign); ok {
				expression = name.own + rest
				break
			}
		}
		hint := "write ${{ " + expression + " }}"
		switch label := p.Local(); {
		case strings.HasPrefix(label, "spec."+string(commandField)):
			hint = throughEnv(expression)
		case strings.HasPrefix(label, "input."):
			hint = "expressions are replaced in spec and env; a program can also read the outputs of parents and the inputs of the run from the file $SWITCHYARD_INPUT"
		}
		w.Warn(w.locateInText(text, found[2], p), p, p.Local()+" has "+source.Quote(whole)+", which is not replaced", hint)
	}
}

// waitsForMachine warns about a task that starts when a machine has ended, which only a person can cause.
func (w *taskWarnings) waitsForMachine(def *v1.Definition, task *v1.TaskDefinition, at *source.Path) {
	for i, name := range task.GetDependsOn() {
		before := v1.TaskNamed(def, name)
		ends := before.GetTimeout() != "" || before.GetDeadline() != "" || before.GetSpec().GetFields()["idleTimeout"].GetStringValue() != ""
		if p := at.Field("dependsOn").Item(i); v1.Lasts(before.GetType()) && !ends {
			w.Warn(w.locate(p), p, fmt.Sprintf("%s runs until it is stopped, and this task waits until then", name),
				"give "+name+" an idleTimeout or a timeout so that it ends by itself, or remove it from dependsOn so that this task runs beside it")
		}
	}
}

// commandLines warns about data that becomes part of a command line.
func (w *taskWarnings) commandLines(def *v1.Definition, task *v1.TaskDefinition, spec proto.Message, p *source.Path) {
	for _, line := range scripts(spec, p) {
		if !condition.HasTemplate(line.text) {
			continue
		}
		t, err := condition.ParseTemplate(line.text)
		if err != nil {
			continue // the check of templates reports it
		}
		for offset, expression := range t.Places() {
			if w.inCommands++; w.inCommands > maxInCommands {
				return
			}
			if condition.CanBeAnyText(expression, func(ofRun bool, field string) bool { return chosenByAuthor(def, task, ofRun, field) }) {
				w.warnOfCommandLine(strings.TrimSpace(expression), w.locateInText(line.text, offset, line.at), line.at)
			}
		}
	}
}

// maxInCommands limits the expressions in command lines that are checked: each takes a tenth of a millisecond.
const maxInCommands = 5000

func (w *taskWarnings) warnOfCommandLine(expression string, at source.Position, p *source.Path) {
	w.Warn(at, p,
		fmt.Sprintf(`%s: the value of ${{ %s }} becomes part of a command line; a value such as "x; id" runs the command id`, p.Local(), expression),
		throughEnv(expression))
}
