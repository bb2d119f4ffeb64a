package mcp

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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
	// untrustedKey is the key that wraps a value from a task.
	untrustedKey = "untrusted"
)

// omitted lists, by message, the fields that answers leave out: details that an agent does not act on.
var omitted = map[protoreflect.Name][]string{
	"Attempt":          {"assignedAt", "claim", "container", "gpus", "numaNode"},
	"DeadLetter":       {"generation"},
	"Instance":         {"assignedAt", "createdAt", "held", "item", "lead", "queuedAt", "suspicions"},
	"ListRunsResponse": {"totals"},
	"ListedTask":       {"demand", "notBefore", "priority", "queuedAt"},
	"Node":             {"benchedUntil", "incarnation", "lastBeatAt", "machine", "neighbors", "registeredAt", "snapshot", "stateSince", "suspicions"},
	"NodeVerdict":      {"parts"},
	"PlannedTask":      {"nodes"},
	"Problem":          {"file", "snippet"},
	"Run":              {"tasks"},
	"StoredWorkflow":   {"a2a", "updatedAt"},
	"Task":             {"assignedAt", "instances", "suspicions"},
	"TaskResult":       {"container", "imageDigest", "stderrTruncated", "stdoutTruncated"},
}

// isPrinted marks the fields that hold text or data from tasks, which is untrusted.
var isPrinted = map[protoreflect.FullName]bool{
	"switchyard.v1.TaskResult.stdout":         true,
	"switchyard.v1.TaskResult.stderr":         true,
	"switchyard.v1.TaskResult.output":         true,
	"switchyard.v1.TaskResult.context_update": true,
	"switchyard.v1.Run.context":               true,
}

// tellingZeros marks the fields whose zero is shown; answers leave out all others that are empty.
var tellingZeros = map[protoreflect.FullName]bool{
	"switchyard.v1.Attempt.attempt":      true,
	"switchyard.v1.Attempt.exit_code":    true,
	"switchyard.v1.ListedTask.exit_code": true,
	"switchyard.v1.Node.running":         true,
	"switchyard.v1.NodeAmount.free":      true,
	"switchyard.v1.TaskResult.exit_code": true,
}

// nameOf returns the name of a field in arguments and answers. It is the JSON name, unless that leaves open what it names.
func nameOf(field protoreflect.FieldDescriptor) string {
	switch of := field.Parent().Name(); field.Name() {
	case "id":
		return "run"
	case "name":
		switch of {
		case "Run", "ListRunsRequest":
			return "workflow"
		case "DrainNodeRequest", "UndrainNodeRequest":
			return "node"
		}
	}
	return field.JSONName()
}

// shorten returns what answers show of a message.
func shorten(m proto.Message) (map[string]any, error) {
	var object map[string]any
	data, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return shortenObject(m.ProtoReflect().Descriptor(), object), nil
}

func shortenObject(of protoreflect.MessageDescriptor, object map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range object {
		field := of.Fields().ByJSONName(name)
		if slices.Contains(omitted[of.Name()], name) {
			continue
		}
		value = shortenField(field, value)
		if !isEmpty(value) || value == 0.0 && tellingZeros[field.FullName()] {
			out[nameOf(field)] = value
		}
	}
	return out
}

// shortenField returns what answers show of the JSON of a field.
func shortenField(field protoreflect.FieldDescriptor, value any) any {
	if isEmpty(value) {
		return value
	}
	if isPrinted[field.FullName()] {
		return wrapUntrusted(value)
	}
	if field.IsMap() {
		if of := field.MapValue().Message(); of != nil {
			for key, each := range value.(map[string]any) {
				value.(map[string]any)[key] = shortenObject(of, each.(map[string]any))
			}
		}
		return value
	}
	if list, ok := value.([]any); ok && field.IsList() {
		count := len(list)
		if field.Message() == nil {
			list = list[:min(count, maxList)]
		}
		for i := range list {
			list[i] = shortenValue(field, list[i])
		}
		if len(list) < count {
			list = append(list, fmt.Sprintf("and %d more", count-maxList))
		}
		return list
	}
	return shortenValue(field, value)
}

func shortenValue(field protoreflect.FieldDescriptor, value any) any {
	of := field.Message()
	switch value := value.(type) {
	case float64:
		return math.Round(value*100) / 100
	case string:
		if at, err := time.Parse(time.RFC3339Nano, value); err == nil && of != nil {
			return at.Truncate(time.Millisecond).Format(time.RFC3339Nano)
		}
		if !strings.HasSuffix(string(field.Name()), "_token") { // a token that is cut is useless
			return cutText(value, maxText)
		}
	case map[string]any:
		if of.Name() != "Struct" { // tasks read the values of a Struct unchanged
			return shortenObject(of, value)
		}
	}
	return value
}

// isEmpty reports whether a value is null, false, zero, or an empty string, list or object.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return value == nil || value == false || value == 0.0 || value == ""
}

// wrapUntrusted wraps a value from a task as data and cuts it to maxPrinted. A text keeps its end, any other value the
// beginning of its JSON.
func wrapUntrusted(value any) any {
	text, isText := value.(string)
	shown, omitted := lastBytes(text, maxPrinted)
	if !isText {
		data, err := json.Marshal(value)
		if err != nil || len(data) <= maxPrinted {
			return map[string]any{untrustedKey: value}
		}
		shown, omitted = cutText(string(data), maxPrinted), len(data)-maxPrinted
	}
	marked := map[string]any{untrustedKey: shown}
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
