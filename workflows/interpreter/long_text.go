package interpreter

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// MaxArgument is the most bytes of an argument of a program, and of a variable with its name: MAX_ARG_STRLEN of Linux (128 KiB, see
// execve(2)) without the NUL at the end.
const MaxArgument = 128<<10 - 1

// LongText is a text with which Linux starts no program.
type LongText struct {
	// Path leads from the task to the text: names of fields or variables as strings, and indices of lists as ints.
	Path []any
	Text string
	// Fault follows the name of the field.
	Fault, Hint string
}

// Error returns the place, the fault and the remedy.
func (t LongText) Error() string {
	var b strings.Builder
	for i, step := range t.Path {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String() + " " + t.Fault + "; " + t.Hint
}

const fromInput = "let the program read the value from the file $SWITCHYARD_INPUT, which has the input of the task and the outputs of its parents"

// LongTexts returns the variables of a task, and the arguments in its spec, that are too long.
func LongTexts(spec *structpb.Struct, env map[string]string) []LongText {
	var long longTexts
	long.fields(spec.GetFields(), []any{"spec"})
	for _, name := range slices.Sorted(maps.Keys(env)) {
		long.variable(name, env[name], []any{"env", name})
	}
	if text := spec.GetFields()["command"].GetStringValue(); len(text) > MaxArgument {
		if p, err := New(text, spec.GetFields()["shell"]); err == nil && p.isTooLong() {
			long = append(long, LongText{[]any{"spec", "command"}, text,
				fmt.Sprintf("has %d bytes, and %s takes it as an argument, in which Linux allows at most %d", len(text), p.argv[0], MaxArgument),
				"begin it with a #! line, so that its interpreter reads it from a file"})
		}
	}
	return long
}

// longTexts collects long texts.
type longTexts []LongText

// fields adds the long texts of a mapping. The specs of all types, and the containers of a pod, have the same names for them.
func (l *longTexts) fields(fields map[string]*structpb.Value, at []any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, below := fields[name], append(slices.Clip(at), name)
		switch name {
		case "command", "args", "entrypoint", "init":
			l.arguments(value.GetListValue().GetValues(), below)
		case "env":
			l.variables(value, below)
		default:
			l.fields(value.GetStructValue().GetFields(), below)
			for i, item := range value.GetListValue().GetValues() {
				l.fields(item.GetStructValue().GetFields(), append(slices.Clip(below), i))
			}
		}
	}
}

func (l *longTexts) arguments(list []*structpb.Value, at []any) {
	for i, item := range list {
		if text := item.GetStringValue(); len(text) > MaxArgument {
			*l = append(*l, LongText{append(slices.Clip(at), i), text,
				fmt.Sprintf("has %d bytes; Linux allows at most %d in an argument", len(text), MaxArgument),
				fromInput + "; a script may be longer if command is one string"})
		}
	}
}

// variables adds the long texts of a mapping of variables, or of a list as in a pod.
func (l *longTexts) variables(value *structpb.Value, at []any) {
	variables := value.GetStructValue().GetFields()
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		l.variable(name, variables[name].GetStringValue(), append(slices.Clip(at), name))
	}
	for i, item := range value.GetListValue().GetValues() {
		fields := item.GetStructValue().GetFields()
		l.variable(fields["name"].GetStringValue(), fields["value"].GetStringValue(), append(slices.Clip(at), i, "value"))
	}
}

func (l *longTexts) variable(name, value string, at []any) {
	if !FitsVariable(name, value) {
		*l = append(*l, LongText{at, value, fmt.Sprintf("has %d bytes; Linux allows at most %d in a variable of this name", len(value), MaxArgument-len(name)-len("=")), fromInput})
	}
}

// FitsVariable reports whether a program can be started with a variable.
func FitsVariable(name, value string) bool { return len(name)+len("=")+len(value) <= MaxArgument }
