package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/workflows/nearest"
	"switchyard/workflows/structs"
)

const (
	waitName, definitionName, pageSizeName, previewName, keyName = "waitSeconds", "definition", "pageSize", "preview", "idempotencyKey"
	// defaultPage is the default page size.
	defaultPage = 20
)

// arguments are those that the tools add to the fields of requests, and those that they describe in their own words.
type arguments struct {
	Preview     bool
	PageSize    *int `json:"pageSize"`
	WaitSeconds *int `json:"waitSeconds"`
	Cursor      string
	Definition  json.RawMessage
	Command     string
	Nodes       []string
	Timeout     string

	Prompt, ContextSummary, Model string
	Count                         *int
	Tools                         []string
}

// ownSchemas has the schemas of arguments, and of fields of requests that need no long description.
var ownSchemas = map[string]schema{
	"run":            {"type": "string", "description": `Run ID, unique prefix, or "last" you submitted.`},
	"task":           {"type": "string", "description": `Name of the task or of an instance, such as "each[3]".`},
	"node":           {"type": "string", "description": "Name of the node."},
	keyName:          {"type": "string", "description": "A repeated request with the same key starts nothing new."},
	pageSizeName:     {"type": "integer", "description": fmt.Sprintf("Maximum items per page; default %d, fewer if they are large.", defaultPage)},
	"pageToken":      {"type": "string", "description": "nextPageToken of the previous page."},
	previewName:      {"type": "boolean", "description": "Change nothing, and say what would happen."},
	waitName:         {"type": "integer", "minimum": 0, "description": fmt.Sprintf("How long to wait for the end, in seconds, at most %d.", maxWait)},
	"cursor":         {"type": "string", "description": "Where to continue: the cursor of the previous answer."},
	definitionName:   {"type": []any{"string", "object"}, "description": "The definition: a text in YAML or JSON, or an object. Its language is the resource " + guideURI + "."},
	"command":        {"type": "string", "description": "Command line, which runs with `sh -c` on each node."},
	"nodes":          {"type": "array", "items": schema{"type": "string"}, "description": `Names of nodes; ["*"] selects all nodes that accept tasks now.`},
	"prompt":         {"type": "string", "description": "What each subagent is asked to do."},
	"count":          {"type": "integer", "description": fmt.Sprintf("How many subagents get the prompt: 1, the default, to %d.", maxSubagents)},
	"contextSummary": {"type": "string", "description": "What they need to know of your work so far."},
	"model":          {"type": "string", "description": "Name of the model; default: that of the node."},
	"tools":          {"type": "array", "items": schema{"type": "string"}, "description": "Tools that they may use, out of those that the node allows: shell, files, fetch, fleet."},
	"timeout":        {"type": "string", "description": `Maximum time that one attempt may run, such as "90s" or "1h30m".`},
}

// decode checks the arguments of a caller and returns the call that they ask for.
func (t *tool) decode(data json.RawMessage) (*invocation, error) {
	if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "null" {
		data = json.RawMessage("{}")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, usagef("%s: the arguments are not valid JSON: %v", t.name, err)
	}
	if err := structs.CheckJSON(data); err != nil {
		return nil, usagef("%s: %v", t.name, err)
	}
	if problems := t.mismatches(value); len(problems) > 0 {
		return nil, usageError{append([]string{"The arguments of " + t.name + " do not fit:"}, problems...)}
	}
	i := &invocation{tool: t}
	given := map[string]json.RawMessage{}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](errors.Join(json.Unmarshal(data, &i.arguments), json.Unmarshal(data, &given))); ok {
		return nil, usagef("The arguments of %s do not fit: %s is the %s; it must be an integer", t.name, wrong.Field, wrong.Value)
	}
	if t.call.method == nil {
		return i, nil
	}
	fields := map[string]json.RawMessage{}
	if t.fixed != "" {
		fields[t.fixed] = json.RawMessage("true")
	}
	i.request = t.call.input.ProtoReflect().New().Interface()
	for _, name := range strings.Fields(t.takes) {
		value, ok := given[nameOf(t.call.input.ProtoReflect().Descriptor().Fields().ByJSONName(name))]
		if !ok && name == pageSizeName {
			value, ok = json.RawMessage(strconv.Itoa(defaultPage)), true
		}
		if ok {
			fields[name] = value
		}
	}
	if data, err = json.Marshal(fields); err == nil {
		err = protojson.Unmarshal(data, i.request)
	}
	if err != nil {
		return nil, usagef("The arguments of %s do not fit: %s", t.name, strings.TrimPrefix(oneLine(err.Error()), "proto: "))
	}
	return i, nil
}

// mismatches returns how decoded arguments differ from the schema of the tool, with the place and the remedy. It leaves ranges
// and patterns to the gateway.
func (t *tool) mismatches(value any) []string {
	invalid, _ := errors.AsType[*jsonschema.ValidationError](t.compiled.Validate(value))
	var problems []string
	for open := []*jsonschema.ValidationError{invalid}; invalid != nil && len(open) > 0; open = open[1:] {
		open = append(open, open[0].Causes...)
		if len(open[0].Causes) == 0 {
			problems = append(problems, t.mismatch(open[0], value)...)
		}
	}
	slices.Sort(problems)
	return problems
}

func (t *tool) mismatch(e *jsonschema.ValidationError, value any) []string {
	place, of := "", t.schema
	for _, name := range e.InstanceLocation {
		properties, _ := of["properties"].(schema)
		switch in := value.(type) {
		case []any:
			index, _ := strconv.Atoi(name)
			place, value, of = place+"["+name+"]", in[index], nested(of["items"])
			continue
		case map[string]any:
			value = in[name]
		}
		place = strings.TrimPrefix(place+"."+name, ".")
		if of = nested(properties[name]); of == nil {
			of = schema{}
		}
	}
	shown, _ := json.Marshal(value)
	it := place + " is " + cutText(string(shown), 60)
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		if place == "" {
			return []string{"they are " + article(k.Got) + "; send an object"}
		}
		return []string{fmt.Sprintf("%s is %s; it must be %s", place, article(k.Got), article(k.Want...))}
	case *kind.Enum:
		words := make([]string, len(k.Want))
		for i, word := range k.Want {
			words[i] = fmt.Sprint(word)
		}
		words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
		return []string{strings.TrimSuffix(fmt.Sprintf("%s, which is not one of %s; %s", it, strings.Join(words, ", "), nearest.DidYouMean(fmt.Sprint(value), words)), "; ")}
	case *kind.Format:
		return []string{it + "; it must be a time such as 2026-01-15T01:30:00Z"}
	case *kind.Minimum:
		return []string{fmt.Sprintf("%s; it must be %s or more: %s", it, k.Want.RatString(), of["description"])}
	case *kind.MinLength:
		return []string{fmt.Sprintf("%s is missing: %s", place, of["description"])}
	case *kind.Required:
		problems := make([]string, len(k.Missing))
		for i, name := range k.Missing {
			problems[i] = fmt.Sprintf("%s is missing: %s", name, nested(nested(of["properties"])[name])["description"])
		}
		return problems
	case *kind.AdditionalProperties:
		problems := make([]string, len(k.Properties))
		for i, name := range k.Properties {
			known := slices.Sorted(maps.Keys(nested(of["properties"])))
			problems[i] = strings.TrimPrefix(place+"."+name, ".") + " is unknown; "
			if hint := nearest.DidYouMean(name, known); hint != "" {
				problems[i] += hint
			} else {
				problems[i] += "known are " + strings.Join(known, ", ")
			}
		}
		return problems
	}
	return []string{it + ", which does not fit"}
}

func nested(value any) schema {
	s, _ := value.(schema)
	return s
}

// article returns the names of JSON types with their articles.
func article(types ...string) string {
	var all []string
	for _, t := range types {
		switch {
		case t == "null":
		case strings.ContainsRune("aeiou", rune(t[0])):
			t = "an " + t
		default:
			t = "a " + t
		}
		all = append(all, t)
	}
	return strings.Join(all, " or ")
}
