package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/structs"
)

// These functions read texts, such as key=value outputs and what programs print.
const (
	jsonFunction  = "json"
	linesFunction = "lines"
)

// jsonOfText declares json(text), which returns what a text contains as JSON.
func jsonOfText(m *model) cel.EnvOption {
	return cel.Function(jsonFunction, cel.Overload("json_string", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(m.readJSON)))
}

// linesOfText declares lines(text), which returns the lines of a text.
func linesOfText(m *model) cel.EnvOption {
	return cel.Function(linesFunction, cel.Overload("lines_string", []*cel.Type{cel.StringType}, cel.ListType(cel.StringType), cel.UnaryBinding(m.readLines)))
}

// readJSON returns the value of a JSON text. A text that is not one JSON value, or whose value would differ from the text, is an
// error.
func (m *model) readJSON(arg ref.Val) ref.Val {
	text, ok := arg.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	value, err := parseJSON(strings.TrimPrefix(string(text), "\ufeff"))
	if err != nil {
		return types.NewErr("%s(): %v", jsonFunction, err)
	}
	return m.NativeToValue(value)
}

func parseJSON(text string) (*structpb.Value, error) {
	if isBlank(text) {
		return nil, errors.New("the text is empty")
	}
	if err := structs.CheckJSON([]byte(text)); err != nil {
		return nil, err
	}
	var value any
	err := json.Unmarshal([]byte(text), &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := text[:max(min(int(syntax.Offset), len(text))-1, 0)]
		remedy := ""
		if strings.HasSuffix(syntax.Error(), "after top-level value") {
			remedy = "; if each line is a value, write lines(x).map(line, json(line))"
		}
		return nil, fmt.Errorf("the text is not JSON: %w in line %d%s", err, strings.Count(before, "\n")+1, remedy)
	}
	if err != nil {
		return nil, err
	}
	return structpb.NewValue(value)
}

// readLines returns the lines of a text, without the ends of lines. What follows the last end of a line is a line only if it is not
// empty.
func (m *model) readLines(arg ref.Val) ref.Val {
	text, ok := arg.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		lines = append(lines, strings.TrimSuffix(line, "\r"))
	}
	return types.NewStringList(m, lines)
}
