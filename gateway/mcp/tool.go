package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
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
)

// tool is an MCP tool.
type tool struct {
	name string
	// call is the service call that the tool makes, or the one that its arguments come from.
	call call
	// description replaces the comment of the call.
	description string
	// takes lists the request fields that become arguments, adds the arguments of ownSchemas, and needs the required arguments,
	// separated by spaces.
	takes, adds, needs string
	// fixed is a request field that the tool always sets to true.
	fixed string
	// do replaces the plain service call, if it is set.
	do func(context.Context, *invocation) (any, error)
	// preview describes what a tool that writes would do, without changing anything.
	preview func(context.Context, *invocation) (any, error)
	// destructive marks tools that end or undo work of others.
	destructive bool

	// schema is the schema of the arguments, and compiled checks it.
	schema   schema
	compiled *jsonschema.Schema
}

// invocation is a single tool call.
type invocation struct {
	*Services
	tool      *tool
	arguments arguments
	// request holds the arguments that are fields of the request.
	request proto.Message
	// progress reports the progress of the call to the caller, or is nil if the caller did not ask for it.
	progress func(ctx context.Context, done float64, message string)
}

// isWriting reports whether the tool changes state.
func (t *tool) isWriting() bool {
	return t.call.method != nil && v1.RulesOf(t.call.method).GetEffect() == v1.Effect_EFFECT_WRITE
}

// compile derives the schema of the arguments. It panics if the row of the tool is wrong.
func (t *tool) compile() {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	var decoded any
	data, err := json.Marshal(t.input(api()))
	if err == nil {
		err = json.Unmarshal(data, &decoded)
	}
	if err == nil {
		err = compiler.AddResource(t.name, decoded)
	}
	if err != nil {
		panic(t.name + ": " + err.Error())
	}
	t.schema, t.compiled = nested(decoded), compiler.MustCompile(t.name)
}

// definition returns the tool in the form that clients receive.
func (t *tool) definition() *sdk.Tool {
	closed := false
	made := &sdk.Tool{
		Name: t.name, Description: t.description, InputSchema: t.schema, OutputSchema: t.output(api()),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: !t.isWriting(), OpenWorldHint: &closed, IdempotentHint: !t.isWriting()},
	}
	if made.Description == "" {
		made.Description = oneLine(api().operationOf(t.call.method).Description)
	}
	if t.isWriting() {
		made.Annotations.DestructiveHint = &t.destructive
	}
	return made
}

// run executes a tool call.
func (t *tool) run(ctx context.Context, i *invocation) (any, error) {
	if i.arguments.Preview {
		would, err := t.preview(ctx, i)
		if err != nil {
			return nil, err
		}
		return map[string]any{previewName: would}, nil
	}
	if t.do != nil {
		return t.do(ctx, i)
	}
	return i.callPaged(ctx, nil)
}

// callPaged makes the call of the tool and returns its answer, which finish completes, if it is set. While the answer is too
// large, callPaged repeats the call with half the page size.
func (i *invocation) callPaged(ctx context.Context, finish func(map[string]any)) (map[string]any, error) {
	for {
		res, err := i.tool.call.do(ctx, i.Services, i.request)
		if err != nil {
			return nil, err
		}
		answer, err := shorten(res)
		if err != nil {
			return nil, err
		}
		if finish != nil {
			finish(answer)
		}
		if i.isWithinLimit(answer) || !i.halvePage() {
			return answer, nil
		}
	}
}

// isWithinLimit reports whether an answer is within its size limit.
func (i *invocation) isWithinLimit(answer any) bool {
	limit := maxAnswer
	if i.arguments.PageSize != nil {
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
