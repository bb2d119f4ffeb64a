package mcp

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxText bounds a text in an answer, in bytes.
	maxText = 240
	// maxPrinted bounds the output of a task, in bytes. The end is kept.
	maxPrinted = 1200
	// maxList bounds the length of a list of plain values.
	maxList = 16
)

// projection selects a field of a message for an answer. Without sub-fields it selects the whole value.
type projection struct {
	name   string // JSON name of the field
	as     string // its name in the answer
	fields []projection
}

// parseProjection parses fields such as "id=run state tasks(state error)". A field with "=" is renamed to the name after it.
func parseProjection(text string) []projection {
	tokens := strings.FieldsFunc(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text), unicode.IsSpace)
	fields, rest := parseFields(tokens)
	if len(rest) > 0 {
		panic("unbalanced projection: " + text)
	}
	return fields
}

func parseFields(tokens []string) (fields []projection, rest []string) {
	for len(tokens) > 0 {
		token := tokens[0]
		tokens = tokens[1:]
		switch token {
		case "(":
			fields[len(fields)-1].fields, tokens = parseFields(tokens)
		case ")":
			return fields, tokens
		default:
			name, as, renamed := strings.Cut(token, "=")
			if !renamed {
				as = name
			}
			fields = append(fields, projection{name: name, as: as})
		}
	}
	return fields, nil
}

// isPrinted marks the fields that hold text or data from tasks, which is untrusted.
var isPrinted = map[protoreflect.FullName]bool{
	"switchyard.v1.TaskResult.stdout":         true,
	"switchyard.v1.TaskResult.stderr":         true,
	"switchyard.v1.TaskResult.output":         true,
	"switchyard.v1.TaskResult.context_update": true,
	"switchyard.v1.Run.context":               true,
	"switchyard.v1.LogLine.text":              true,
}

// untrustedKey is the key that wraps a value from a task.
const untrustedKey = "untrusted"

// wrapUntrusted wraps a value from a task as data and cuts it to maxPrinted. A text keeps its end, any other value the
// beginning of its JSON.
func wrapUntrusted(value any) any {
	text, ok := value.(string)
	if !ok {
		data, err := json.Marshal(value)
		if err != nil || len(data) <= maxPrinted {
			return map[string]any{untrustedKey: value}
		}
		return map[string]any{untrustedKey: cutText(string(data), maxPrinted), "omittedBytes": len(data) - maxPrinted}
	}
	end, omitted := lastBytes(text, maxPrinted)
	marked := map[string]any{untrustedKey: end}
	if omitted > 0 {
		marked["omittedBytes"] = omitted
	}
	return marked
}

// lastBytes returns at most the last limit bytes of a text and the number of bytes left out. It starts at a line break if
// one is near.
func lastBytes(text string, limit int) (end string, omitted int) {
	if len(text) <= limit {
		return text, 0
	}
	end = text[len(text)-limit:]
	if i := strings.IndexByte(end, '\n'); i >= 0 && i < limit/4 {
		end = end[i+1:]
	}
	end = strings.ToValidUTF8(end, "")
	return end, len(text) - len(end)
}

// cutText returns the first limit bytes of a text, with an ellipsis if it was cut.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// project returns the selected fields of a message, without empty values.
func project(m proto.Message, fields []projection) (map[string]any, error) {
	data, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("print %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return projectObject(m.ProtoReflect().Descriptor(), fields, object), nil
}

func projectObject(of protoreflect.MessageDescriptor, fields []projection, object map[string]any) map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		value, ok := object[f.name]
		field := fieldOf(of, f)
		if !ok || isEmpty(value) || isZero(value) && !tellingZeros[field.FullName()] {
			continue
		}
		if value = projectField(field, f, value); !isEmpty(value) {
			out[f.as] = value
		}
	}
	return out
}

// tellingZeros marks the numeric fields whose zero is meaningful.
var tellingZeros = map[protoreflect.FullName]bool{
	"switchyard.v1.Attempt.attempt":      true,
	"switchyard.v1.Attempt.exit_code":    true,
	"switchyard.v1.ListedTask.exit_code": true,
	"switchyard.v1.Node.running":         true,
	"switchyard.v1.TaskResult.exit_code": true,
}

func isZero(value any) bool { return value == 0.0 || value == false }

// isEmpty reports whether a value is null or an empty string, list or object.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

func projectField(field protoreflect.FieldDescriptor, f projection, value any) any {
	if isPrinted[field.FullName()] {
		return wrapUntrusted(value)
	}
	if m := field.Message(); m != nil && m.FullName() == "google.protobuf.Struct" {
		return value // tasks read the numbers and zeros of these values unchanged
	}
	switch value := value.(type) {
	case map[string]any:
		switch {
		case field.IsMap() && len(f.fields) > 0:
			out := map[string]any{}
			for key, each := range value {
				out[key] = projectObject(field.MapValue().Message(), f.fields, each.(map[string]any))
			}
			return out
		case len(f.fields) > 0:
			return projectObject(field.Message(), f.fields, value)
		}
		return tidy(value)
	case []any:
		out := make([]any, 0, len(value))
		for _, each := range value {
			if object, ok := each.(map[string]any); ok && len(f.fields) > 0 {
				out = append(out, projectObject(field.Message(), f.fields, object))
				continue
			}
			if len(out) == maxList {
				out = append(out, fmt.Sprintf("and %d more", len(value)-maxList))
				break
			}
			out = append(out, tidy(each))
		}
		return out
	case string:
		if field.Message() != nil && field.Message().FullName() == "google.protobuf.Timestamp" {
			return milliseconds(value)
		}
		if field.Message() == nil && !isToken(field) {
			return cutText(value, maxText)
		}
	}
	return tidy(value)
}

// tidy removes empty values and rounds numbers to two decimals.
func tidy(value any) any {
	switch value := value.(type) {
	case float64:
		return math.Round(value*100) / 100
	case map[string]any:
		out := map[string]any{}
		for key, each := range value {
			if each = tidy(each); !isEmpty(each) {
				out[key] = each
			}
		}
		return out
	}
	return value
}

// milliseconds truncates an RFC 3339 time to milliseconds.
func milliseconds(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return at.Truncate(time.Millisecond).Format(time.RFC3339Nano)
}

// isToken reports whether a field holds a token, which is useless when cut.
func isToken(field protoreflect.FieldDescriptor) bool {
	return strings.HasSuffix(string(field.Name()), "_token")
}

// fieldOf returns the descriptor of a projected field. It panics if the message has no such field, which is a mistake in the
// table of tools.
func fieldOf(of protoreflect.MessageDescriptor, f projection) protoreflect.FieldDescriptor {
	field := of.Fields().ByJSONName(f.name)
	if field == nil {
		panic(fmt.Sprintf("%s has no field %s", of.FullName(), f.name))
	}
	return field
}

// schemaOf returns the schema of the projected fields of a message: their names and types, which an agent needs no comments for.
func schemaOf(of protoreflect.MessageDescriptor, fields []projection) schema {
	properties := schema{}
	for _, f := range fields {
		properties[f.as] = schema{"type": typeOf(fieldOf(of, f))}
	}
	return schema{"type": "object", "properties": properties}
}

// typeOf returns the JSON type of a field.
func typeOf(field protoreflect.FieldDescriptor) string {
	switch {
	case field.IsList():
		return "array"
	case isPrinted[field.FullName()], field.IsMap():
		return "object"
	case field.Message() != nil && field.Message().FullName() != "google.protobuf.Timestamp":
		return "object"
	}
	switch field.Kind() {
	case protoreflect.BoolKind:
		return "boolean"
	case protoreflect.Int32Kind, protoreflect.Uint32Kind:
		return "integer"
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return "number"
	}
	return "string"
}
