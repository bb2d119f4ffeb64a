package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/subagent/tool"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	dispatchName = "dispatch_subagents"
	// agentsTask is the name of the task in a run of subagents.
	agentsTask = "agents"
	// maxSubagents bounds the subagents of one call.
	maxSubagents = 50
	// maxAnswers bounds all answers together, in bytes.
	maxAnswers = 60 << 10
)

// dispatchSubagents is the tool that runs copies of the calling agent.
type dispatchSubagents struct{ *Fleet }

// Definition returns the description for the model.
func (dispatchSubagents) Definition() tool.Definition {
	return tool.Definition{
		Name: dispatchName,
		Description: "Runs subagents on the fleet at the same time, waits until all have ended, and returns their answers. They have your model and tools, " +
			"but not your conversation and not this tool: put all that they need in the prompt and the contextSummary. " +
			"Give either one prompt for `count` subagents, or a list of prompts, one for each.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
			`"prompt":{"type":"string","description":"What each subagent is asked to do."},`+
			`"count":{"type":"integer","minimum":1,"maximum":%d,"description":"How many subagents get the prompt; default 1."},`+
			`"prompts":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":%d,"description":"A prompt for each subagent, in place of prompt and count."},`+
			`"contextSummary":{"type":"string","description":"What they need to know of your work so far."},`+
			`"timeoutSeconds":{"type":"integer","minimum":1,"maximum":%d,"description":"Longest time to wait; default %d. Subagents that have not ended by then continue."}`+
			`},"additionalProperties":false}`, maxSubagents, maxSubagents, maxWait, defaultWait)),
	}
}

// Call starts a run with one fanned-out task for all subagents and waits for its end.
func (t dispatchSubagents) Call(ctx context.Context, call tool.Call) (tool.Outcome, error) {
	var in struct {
		Prompt, ContextSummary string
		Count, TimeoutSeconds  int
		Prompts                []string
	}
	if err := parse(call, &in); err != nil {
		return failure("%v", err), nil
	}
	wait, err := seconds(in.TimeoutSeconds)
	if err != nil {
		return failure("%v", err), nil
	}
	prompts, err := promptsOf(in.Prompt, in.Count, in.Prompts)
	if err != nil {
		return failure("%v", err), nil
	}
	task, input, err := t.agents(prompts, in.ContextSummary)
	if err != nil {
		return failure("%v", err), nil
	}
	run, err := t.submit(ctx, call, "agent-subagents", agentsTask, task, input)
	if err != nil {
		return outcomeOf(ctx, "No subagent was started", err)
	}
	ended, err := t.await(ctx, run, wait)
	if err != nil {
		return outcomeOf(ctx, fmt.Sprintf("The outcome of the subagents (run %s) is unknown", run), err)
	}
	if !v1.IsRunTerminal(ended.GetState()) {
		return tool.Outcome{Text: fmt.Sprintf(`The subagents have not all ended within %s and continue as the run %s. get_workflow_status with "run":%q shows when it has ended, `+
			`and get_task_result with "task":"%s[0]" the first answer.`, wait, run, run, agentsTask)}, nil
	}
	return t.answers(ctx, run, len(prompts))
}

// promptsOf returns the prompt of each subagent. Its error is meant for the model.
func promptsOf(prompt string, count int, prompts []string) ([]string, error) {
	switch {
	case len(prompts) > 0 && (prompt != "" || count != 0):
		return nil, fmt.Errorf("give either `prompt` and `count`, or `prompts`")
	case len(prompts) == 0 && prompt == "":
		return nil, fmt.Errorf("`prompt` or `prompts` is required")
	case len(prompts) == 0 && count >= 0 && count <= maxSubagents:
		prompts = slices.Repeat([]string{prompt}, max(count, 1))
	case len(prompts) == 0 || len(prompts) > maxSubagents:
		return nil, fmt.Errorf("there must be 1 to %d subagents", maxSubagents)
	}
	if i := slices.Index(prompts, ""); i >= 0 {
		return nil, fmt.Errorf("prompts[%d] is empty", i)
	}
	return prompts, nil
}

// agents returns the task of subagents and the input of its run. Texts of the model and of the task's author are in the
// input, where they are not evaluated as expressions.
func (f *Fleet) agents(prompts []string, summary string) (*v1.TaskDefinition, *structpb.Struct, error) {
	d := f.o.Defaults
	data, err := protojson.Marshal(&v1.SubagentSpec{
		Provider: d.GetProvider(), Model: d.GetModel(), BaseUrl: d.GetBaseUrl(), MaxTurns: d.GetMaxTurns(), MaxTokens: d.GetMaxTokens(), MaxCostUsd: d.GetMaxCostUsd(),
		Tools:      slices.DeleteFunc(slices.Clone(d.GetTools()), func(name string) bool { return name == "fleet" }),
		McpServers: d.GetMcpServers(), Image: d.GetImage(), FetchHosts: d.GetFetchHosts(), Network: d.GetNetwork(),
	})
	if err != nil {
		return nil, nil, err
	}
	spec := &structpb.Struct{}
	if err := protojson.Unmarshal(data, spec); err != nil {
		return nil, nil, err
	}
	var literals literals
	for name, value := range spec.GetFields() {
		spec.Fields[name] = literals.replace(value)
	}
	env := map[string]string{}
	for name, value := range f.o.Env {
		env[name] = literals.text(value)
	}
	spec.Fields["prompt"] = structpb.NewStringValue("${{ input.item }}")
	if summary != "" {
		spec.Fields["contextSummary"] = structpb.NewStringValue("${{ workflow.input.contextSummary }}")
	}
	values := map[string]any{"contextSummary": summary, "prompts": anys(prompts), "literals": anys(literals)}
	input, err := structpb.NewStruct(values)
	if err != nil {
		return nil, nil, fmt.Errorf("invalid arguments: %w", err)
	}
	return &v1.TaskDefinition{
		Type: v1.TypeSubagent, Spec: spec, Env: env, SecretEnv: f.o.SecretEnv, Foreach: structpb.NewStringValue("workflow.input.prompts"), MaxFailures: int32(len(prompts)),
	}, input, nil
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// literals collects texts that would otherwise be evaluated as expressions.
type literals []string

// text returns a text unchanged, or an expression that yields it if it would otherwise be evaluated as one.
func (l *literals) text(text string) string {
	if !strings.Contains(text, "${{") {
		return text
	}
	*l = append(*l, text)
	return fmt.Sprintf("${{ workflow.input.literals[%d] }}", len(*l)-1)
}

// replace applies text to every string in a value.
func (l *literals) replace(value *structpb.Value) *structpb.Value {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		return structpb.NewStringValue(l.text(kind.StringValue))
	case *structpb.Value_ListValue:
		for i, each := range kind.ListValue.GetValues() {
			kind.ListValue.Values[i] = l.replace(each)
		}
	case *structpb.Value_StructValue:
		for name, each := range kind.StructValue.GetFields() {
			kind.StructValue.Fields[name] = l.replace(each)
		}
	}
	return value
}

// answers returns the answers of the subagents of a run.
func (f *Fleet) answers(ctx context.Context, run string, count int) (tool.Outcome, error) {
	var out strings.Builder
	completed := 0
	for i := range count {
		name := fmt.Sprintf("%s[%d]", agentsTask, i)
		got, err := f.runs.GetRunTask(ctx, connect.NewRequest(&v1.GetRunTaskRequest{Id: run, Task: name}))
		if ctx.Err() != nil {
			return tool.Outcome{}, ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(&out, "\n\n## Subagent %d: its answer cannot be read: %v", i+1, err)
			continue
		}
		instance := got.Msg.GetInstance()
		if instance.GetState() == v1.TaskCompleted {
			completed++
			fmt.Fprintf(&out, "\n\n## Subagent %d\n%s", i+1, cut(answerOf(instance), maxAnswers/count))
			continue
		}
		fmt.Fprintf(&out, "\n\n## Subagent %d: %s %s\n%s", i+1, instance.GetState(), instance.GetReason(), cut(instance.GetError(), maxAnswers/count))
	}
	return tool.Outcome{Text: fmt.Sprintf("%d of %d subagents have completed (run %s).", completed, count, run) + out.String(), IsError: completed == 0}, nil
}

// answerOf returns the answer of a subagent: its text, or its output as JSON.
func answerOf(instance *v1.Instance) string {
	fields := instance.GetResult().GetOutput().GetFields()
	if text, ok := fields["text"].GetKind().(*structpb.Value_StringValue); ok && len(fields) == 1 {
		return text.StringValue
	}
	data, err := json.Marshal(instance.GetResult().GetOutput().AsMap())
	if err != nil || len(fields) == 0 {
		return "(no answer)"
	}
	return string(data)
}

// cut returns the beginning of a text, and a note on how much was left out.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	kept := strings.ToValidUTF8(text[:limit], "")
	return fmt.Sprintf("%s\n[%d bytes are left out]", kept, len(text)-len(kept))
}
