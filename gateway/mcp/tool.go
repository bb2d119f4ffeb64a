package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxAnswer bounds an answer whose page size the caller did not choose, in bytes of JSON. Clients receive the answer
	// twice: as structured content and as text.
	maxAnswer = 3800
	// maxLargeAnswer bounds any other answer.
	maxLargeAnswer = 32 << 10
	// pageSizeName, previewName and keyName are argument names.
	pageSizeName, previewName, keyName = "pageSize", "preview", "idempotencyKey"
	// defaultPage and maxPage are the default and the maximum page size.
	defaultPage, maxPage = 20, 200
)

// tool is an MCP tool.
type tool struct {
	name string
	// call is the service call that the tool makes, or the one that its arguments come from.
	call call
	// description replaces the comment of the call. If it ends with "+", it precedes the comment instead.
	description string
	// takes selects the request fields that become arguments, in the syntax of parseProjection.
	takes string
	// adds lists arguments without a request field.
	adds []argument
	// needs lists the names of required arguments, separated by spaces.
	needs string
	// fixed holds request fields that the tool always sets, in JSON.
	fixed string
	// gives selects the response fields of the answer, in the syntax of parseProjection.
	gives string
	// answer returns the schema of the answer. If it is nil, the schema follows from gives.
	answer func() schema
	// do replaces the plain service call, if it is set.
	do func(context.Context, *invocation) (any, error)
	// preview describes what a tool that writes would do, without changing anything.
	preview func(context.Context, *invocation) (any, error)
	// destructive marks tools that end or undo work of others.
	destructive bool
	// offline marks tools that need no gateway.
	offline bool
}

// argument is an argument without a request field.
type argument struct {
	name   string
	schema schema
}

// invocation is a single tool call.
type invocation struct {
	*Services
	tool *tool
	// arguments holds all arguments of the caller; request holds those that are request fields.
	arguments map[string]any
	request   proto.Message
	// progress reports the progress of the call to the caller, or is nil if the caller did not ask for it.
	progress func(ctx context.Context, done float64, message string)
}

// text returns a string argument, or "" if it is missing.
func (i *invocation) text(name string) string {
	text, _ := i.arguments[name].(string)
	return text
}

// number returns an integer argument, or otherwise if it is missing.
func (i *invocation) number(name string, otherwise int) int {
	if number, ok := i.arguments[name].(json.Number); ok {
		if n, err := number.Int64(); err == nil {
			return int(n)
		}
	}
	return otherwise
}

// isWriting reports whether the tool changes state.
func (t *tool) isWriting() bool {
	return t.call.method != nil && v1.RulesOf(t.call.method).GetEffect() == v1.Effect_EFFECT_WRITE
}

// definition returns the tool in the form that clients receive.
func (t *tool) definition(d document) *sdk.Tool {
	closed := false
	destructive := t.destructive
	made := &sdk.Tool{
		Name: t.name, Description: t.describe(d), InputSchema: t.input(d), OutputSchema: t.output(),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: !t.isWriting(), OpenWorldHint: &closed, IdempotentHint: !t.isWriting()},
	}
	if t.isWriting() {
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
			if property["description"] == "" { // variables of REST paths have no description
				property["description"] = namedThings[f.as]
			}
			switch f.as {
			case keyName:
				property["description"] = "A repeated request with the same key starts nothing new."
			case pageSizeName:
				property = schema{"type": "integer", "minimum": 1, "maximum": maxPage, "description": fmt.Sprintf("Maximum items per page; default %d, fewer if they are large.", defaultPage)}
			}
			properties[f.as] = property
		}
	}
	for _, a := range t.adds {
		properties[a.name] = a.schema
	}
	if t.isWriting() {
		properties[previewName] = schema{"type": "boolean", "description": "Change nothing, and say what would happen."}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if needs := strings.Fields(t.needs); len(needs) > 0 {
		s["required"] = needs
	}
	return s
}

// namedThings holds descriptions for arguments that identify the subject of a tool.
var namedThings = map[string]string{
	"run":  `Run ID, unique prefix, or "last" you submitted.`,
	"task": `Name of the task or of an instance, such as "each[3]".`,
	"node": "Name of the node.",
}

// output returns the schema of the answers.
func (t *tool) output() schema {
	if t.answer != nil {
		return t.answer()
	}
	return schemaOf(t.call.output.ProtoReflect().Descriptor(), parseProjection(t.gives))
}

// run executes a tool call.
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
	return i.callPaged(ctx, t.call, parseProjection(t.gives))
}

// parse validates arguments and returns the resulting call of the tool.
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

// callPaged makes a call and returns the selected fields of its answer. While the answer is too large, callPaged repeats the
// call with half the page size.
func (i *invocation) callPaged(ctx context.Context, c call, fields []projection) (map[string]any, error) {
	for {
		answer, err := c.do(ctx, i.Services, i.request)
		if err != nil {
			return nil, err
		}
		object, err := project(answer, fields)
		if err != nil || i.isWithinLimit(object) || !i.halvePage() {
			return object, err
		}
	}
}

// isWithinLimit reports whether an answer is within its size limit.
func (i *invocation) isWithinLimit(answer any) bool {
	limit := maxAnswer
	if _, sized := i.arguments[pageSizeName]; sized {
		limit = maxLargeAnswer
	}
	data, err := compact(answer)
	return err != nil || len(data) <= limit
}

// halvePage halves the page size of the request. It returns false if the request has no page size or the size is already 1.
func (i *invocation) halvePage() bool {
	m := i.request.ProtoReflect()
	field := m.Descriptor().Fields().ByJSONName(pageSizeName)
	if field == nil || m.Get(field).Int() <= 1 {
		return false
	}
	m.Set(field, protoreflect.ValueOfInt32(int32(m.Get(field).Int()/2)))
	return true
}

// names returns the sorted names of tools.
func names(tools []*tool) []string {
	var all []string
	for _, t := range tools {
		all = append(all, t.name)
	}
	slices.Sort(all)
	return all
}
