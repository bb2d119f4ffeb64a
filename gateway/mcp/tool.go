package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxAnswer bounds an answer whose page the caller has not sized, in bytes of JSON. Clients get it as structured content
	// and as text.
	maxAnswer = 3800
	// maxLargeAnswer bounds any other answer.
	maxLargeAnswer = 32 << 10
	// pageSizeName and previewName are names of arguments.
	pageSizeName, previewName = "pageSize", "preview"
	// defaultPage and maxPage are how many items a page holds.
	defaultPage, maxPage = 20, 200
)

// tool is what an agent may call.
type tool struct {
	name string
	// call is the call of the services that the tool makes, or the one that its arguments are of.
	call call
	// description takes the place of the comment of the call, and goes in front of it if it ends with "+".
	description string
	// takes are the fields of the request that are arguments, as parseProjection reads them.
	takes string
	// adds are arguments that the request has no fields for.
	adds []argument
	// needs are the names of arguments that must be given, separated by spaces.
	needs string
	// fixed are fields of the request that the tool sets, in JSON.
	fixed string
	// gives are the fields of the answer that the tool answers with, as parseProjection reads them.
	gives string
	// answer is the schema of the answer of a tool with do; nil: that of gives.
	answer func(document) schema
	// do takes the place of the plain call.
	do func(context.Context, *invocation) (any, error)
	// preview returns what a tool that writes would do. It changes nothing.
	preview func(context.Context, *invocation) (any, error)
	// destructive tools end or undo work of others.
	destructive bool
	// offline tools need no gateway.
	offline bool
}

// argument is an argument that no request has a field for.
type argument struct {
	name   string
	schema schema
}

// invocation is one call of a tool.
type invocation struct {
	*Services
	tool *tool
	// arguments are all of the caller, and request has those that are fields of it.
	arguments map[string]any
	request   proto.Message
	// progress tells the caller, if it wants to know, how far the call is; nil: it does not.
	progress func(ctx context.Context, done float64, message string)
}

// text returns an argument that is a string, or "" if it is not given.
func (i *invocation) text(name string) string {
	text, _ := i.arguments[name].(string)
	return text
}

// number returns an argument that is an integer, or otherwise if it is not given.
func (i *invocation) number(name string, otherwise int) int {
	if number, ok := i.arguments[name].(json.Number); ok {
		if n, err := number.Int64(); err == nil {
			return int(n)
		}
	}
	return otherwise
}

// writes reports whether the tool changes something.
func (t *tool) writes() bool {
	return t.call.method != nil && v1.RulesOf(t.call.method).GetEffect() == v1.Effect_EFFECT_WRITE
}

// definition returns the tool as clients see it.
func (t *tool) definition(d document) *sdk.Tool {
	closed := false
	destructive := t.destructive
	made := &sdk.Tool{
		Name: t.name, Description: t.describe(d), InputSchema: t.input(d), OutputSchema: t.output(d),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: !t.writes(), OpenWorldHint: &closed, IdempotentHint: !t.writes()},
	}
	if t.writes() {
		made.Annotations.DestructiveHint = &destructive
	}
	return made
}

func (t *tool) describe(d document) string {
	text, extends := strings.CutSuffix(t.description, "+")
	if text == "" || extends {
		text = strings.TrimSpace(text + " " + d.comment(t.call.method))
	}
	return text
}

// input returns the schema of the arguments.
func (t *tool) input(d document) schema {
	properties := schema{}
	if t.call.method != nil {
		fields := d.arguments(d.operationOf(t.call.method))
		for _, f := range parseProjection(t.takes) {
			s, ok := fields[f.name]
			if !ok {
				panic(fmt.Sprintf("%s: %s has no field %s", t.name, t.call.method.FullName(), f.name))
			}
			property := d.inline(s)
			if property["description"] == "" { // variables of REST paths have none
				property["description"] = namedThings[f.as]
			}
			if f.as == pageSizeName {
				property = schema{"type": "integer", "minimum": 1, "maximum": maxPage, "description": fmt.Sprintf("Most items of a page; default %d, fewer if they are large.", defaultPage)}
			}
			properties[f.as] = property
		}
	}
	for _, a := range t.adds {
		properties[a.name] = a.schema
	}
	if t.writes() {
		properties[previewName] = schema{"type": "boolean", "description": "Only say what would happen, and change nothing."}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if needs := strings.Fields(t.needs); len(needs) > 0 {
		s["required"] = needs
	}
	return s
}

// namedThings are the descriptions of arguments that name what a tool is about.
var namedThings = map[string]string{
	"run":  `Id of the run, a unique beginning of it, or "last".`,
	"task": `Name of the task, or of an instance of it, such as "each[3]".`,
	"node": "Name of the node.",
}

// output returns the schema of the answers.
func (t *tool) output(d document) schema {
	var s schema
	if t.answer != nil {
		s = t.answer(d)
	} else {
		s = d.schemaOf(t.call.output.ProtoReflect().Descriptor(), parseProjection(t.gives))
	}
	if t.writes() {
		properties := maps.Clone(s["properties"].(schema))
		properties[previewName] = schema{"type": "object", "description": "What would happen, in answers to `preview`; nothing has changed."}
		s["properties"] = properties
	}
	return s
}

// run carries out a call of the tool.
func (t *tool) run(ctx context.Context, i *invocation) (any, error) {
	if i.arguments[previewName] == true {
		would, err := t.preview(ctx, i)
		if err != nil {
			return nil, err
		}
		return map[string]any{previewName: would}, nil
	}
	if t.do != nil {
		return t.do(ctx, i)
	}
	return i.paged(ctx, t.call, parseProjection(t.gives))
}

// parse returns the call of a tool with arguments.
func (t *tool) parse(s schema, data json.RawMessage) (*invocation, error) {
	arguments, err := readArguments(data)
	if err != nil {
		return nil, usagef("%s: %v", t.name, err)
	}
	if problems := checkArguments(s, arguments); len(problems) > 0 {
		return nil, usageError{append([]string{"The arguments of " + t.name + " do not fit:"}, problems...)}
	}
	i := &invocation{tool: t, arguments: arguments}
	if t.call.method == nil {
		return i, nil
	}
	fields := map[string]any{}
	for _, f := range parseProjection(t.takes) {
		if value, ok := arguments[f.as]; ok {
			fields[f.name] = value
		}
	}
	if _, ok := fields[pageSizeName]; !ok && strings.Contains(t.takes, pageSizeName) {
		fields[pageSizeName] = defaultPage
	}
	i.request = t.call.input.ProtoReflect().New().Interface()
	if t.fixed != "" {
		if err := json.Unmarshal([]byte(t.fixed), &fields); err != nil {
			panic(t.name + ": " + err.Error())
		}
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, usagef("%s: %v", t.name, err)
	}
	if err := protojson.Unmarshal(encoded, i.request); err != nil {
		return nil, usagef("The arguments of %s do not fit: %s", t.name, strings.TrimPrefix(oneLine(err.Error()), "proto: "))
	}
	return i, nil
}

// paged makes a call and returns the fields of its answer. It asks for fewer items while their page is too large.
func (i *invocation) paged(ctx context.Context, c call, fields []projection) (map[string]any, error) {
	for {
		answer, err := c.do(ctx, i.Services, i.request)
		if err != nil {
			return nil, err
		}
		object, err := project(answer, fields)
		if err != nil || i.fits(object) || !i.halvePage() {
			return object, err
		}
	}
}

// fits reports whether an answer is small enough.
func (i *invocation) fits(answer any) bool {
	limit := maxAnswer
	if _, sized := i.arguments[pageSizeName]; sized {
		limit = maxLargeAnswer
	}
	data, err := compact(answer)
	return err != nil || len(data) <= limit
}

// halvePage has the request ask for half as many items, and reports whether that is possible.
func (i *invocation) halvePage() bool {
	m := i.request.ProtoReflect()
	field := m.Descriptor().Fields().ByJSONName(pageSizeName)
	if field == nil || m.Get(field).Int() <= 1 {
		return false
	}
	m.Set(field, protoreflect.ValueOfInt32(int32(m.Get(field).Int()/2)))
	return true
}

// names returns the names of tools.
func names(tools []*tool) []string {
	var all []string
	for _, t := range tools {
		all = append(all, t.name)
	}
	slices.Sort(all)
	return all
}
