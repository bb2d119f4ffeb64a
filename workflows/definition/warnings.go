package definition

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// warnings warns about fields of a task that are allowed but hardly mean what the author intends.
func (d *decoder) warnings(def *v1.Definition, task *v1.TaskDefinition, spec proto.Message, at *source.Path) {
	d.waitsForMachine(def, task, at)
	d.unreplaced(task, at)
	d.commandLines(def, task, spec, at.Field("spec"))
}

// foreignTemplate matches an expression in the braces of other systems. It does not match the Go templates that some programs
// take, such as {{.Name}}.
var foreignTemplate = lazyPattern(`(?:^|[^$])(\{\{-?\s*((?:inputs?|parent|workflow|context|item|matrix|params|parameters|args|steps|tasks|needs|outputs|env|vars|secrets)\b[^{}]*?)-?\}\})`)

// unreplaced warns about {{ }} in the texts of a task, because nothing replaces it.
func (d *decoder) unreplaced(task *v1.TaskDefinition, at *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(task.GetEnv())) {
		d.unreplacedText(task.GetEnv()[name], at.Field("env").Key(name))
	}
	d.unreplacedIn(structpb.NewStructValue(TemplateSpec(task)), at.Field("spec"))
	d.unreplacedIn(structpb.NewStructValue(task.GetInput()), at.Field("input"))
}

func (d *decoder) unreplacedIn(v *structpb.Value, p *source.Path) {
	eachText(v, p, d.unreplacedText)
}

func (d *decoder) unreplacedText(text string, p *source.Path) {
	for _, found := range foreignTemplate().FindAllStringSubmatchIndex(text, -1) {
		whole, expression := text[found[2]:found[3]], strings.TrimSpace(text[found[4]:found[5]])
		if rest, ok := strings.CutPrefix(expression, "inputs."); ok {
			expression = "workflow.input." + rest
		}
		hint := "write ${{ " + expression + " }}"
		switch label := p.Local(); {
		case strings.HasPrefix(label, "spec."+string(commandField)):
			hint = throughEnv(expression)
		case strings.HasPrefix(label, "input."):
			hint = "expressions are replaced in spec and env; the program finds the outputs of parents and the inputs of the run in the file $SWITCHYARD_INPUT"
		}
		d.Warn(d.inText(text, found[2], p), p, p.Local()+" has "+source.Quote(whole)+", which nothing replaces", hint)
	}
}

// inText returns the position in the document of a byte of a text.
func (d *decoder) inText(text string, offset int, p *source.Path) source.Position {
	n := d.nodeAt(p)
	if n == nil {
		return d.locate(p)
	}
	if inside, ok := d.Lines.Inside(n, source.OffsetOf(text, offset)); ok {
		return inside
	}
	return n.At
}

// eachText calls f with each text of a value and its path, in the order of the names.
func eachText(v *structpb.Value, p *source.Path, f func(text string, p *source.Path)) {
	switch v := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		f(v.StringValue, p)
	case *structpb.Value_ListValue:
		for i, item := range v.ListValue.GetValues() {
			eachText(item, p.Item(i), f)
		}
	case *structpb.Value_StructValue:
		for _, name := range slices.Sorted(maps.Keys(v.StructValue.GetFields())) {
			eachText(v.StructValue.GetFields()[name], p.Key(name), f)
		}
	}
}
