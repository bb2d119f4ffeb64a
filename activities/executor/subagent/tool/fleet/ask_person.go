package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/subagent/tool"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	askName = "ask_person"
	// questionTask is the name of the task in a run that asks a person.
	questionTask = "question"
	// maxMessage bounds a question, in bytes.
	maxMessage = 4096
)

// askPerson is the tool that asks a person through an approval task.
type askPerson struct{ *Fleet }

// Definition returns the description for the model.
func (askPerson) Definition() tool.Definition {
	return tool.Definition{
		Name: askName,
		Description: "Asks a person to approve or reject something, and waits for the decision, which may take hours. Put all that the person " +
			"needs to know in the message. The answer is the decision, who made it, and the given reason.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
			`"message":{"type":"string","description":"What is asked, for a person, at most %d bytes."},`+
			`"timeoutSeconds":{"type":"integer","minimum":1,"maximum":%d,"description":"Longest time to wait; default %d. Then the answer is that no person has decided."}`+
			`},"required":["message"],"additionalProperties":false}`, maxMessage, maxWait, defaultWait)),
	}
}

// Call starts a run with one approval task and waits for the decision.
func (t askPerson) Call(ctx context.Context, call tool.Call) (tool.Outcome, error) {
	var in struct {
		Message        string
		TimeoutSeconds int
	}
	if err := parse(call, &in); err != nil {
		return failure("%v", err), nil
	}
	wait, err := seconds(in.TimeoutSeconds)
	switch {
	case err != nil:
		return failure("%v", err), nil
	case in.Message == "" || len(in.Message) > maxMessage:
		return failure("message has %d bytes; it must have 1 to %d", len(in.Message), maxMessage), nil
	}
	input, err := structpb.NewStruct(map[string]any{"message": in.Message})
	if err != nil {
		return failure("message: %v", err), nil
	}
	spec, err := structpb.NewStruct(map[string]any{"message": "${{ workflow.input.message }}", "timeout": wait.String()})
	if err != nil {
		return tool.Outcome{}, err
	}
	run, err := t.submit(ctx, call, "agent-question", questionTask, &v1.TaskDefinition{Type: v1.TypeApproval, Spec: spec}, input)
	if err != nil {
		return outcomeOf(ctx, "The person was not asked", err)
	}
	// The run ends by itself when the approval times out.
	ended, err := t.await(ctx, run, wait+time.Minute)
	if err != nil {
		return outcomeOf(ctx, fmt.Sprintf("The outcome of the question (run %s) is unknown", run), err)
	}
	got, err := t.runs.GetRunTask(ctx, connect.NewRequest(&v1.GetRunTaskRequest{Id: run, Task: questionTask}))
	if err != nil {
		return outcomeOf(ctx, fmt.Sprintf("The decision about the run %s cannot be read", run), err)
	}
	return decision(ended, got.Msg.GetTask()), nil
}

// decision returns the outcome of a question.
func decision(run *v1.Run, task *v1.Task) tool.Outcome {
	fields := task.GetResult().GetOutput().GetFields()
	answer := map[string]any{"run": run.GetId(), "decision": "none"}
	for from, to := range map[string]string{"by": "by", "reason": "reason", "at": "at"} {
		if text := fields[from].GetStringValue(); text != "" {
			answer[to] = text
		}
	}
	switch {
	case !v1.IsTaskTerminal(task.GetState()):
		answer["note"] = "No person has decided yet; get_workflow_status and get_task_result show the decision later."
	case task.GetState() == v1.TaskCompleted:
		answer["decision"] = "approved"
	case task.GetState() == v1.TaskRejected && answer["by"] != nil:
		answer["decision"] = v1.TaskRejected
	case task.GetState() == v1.TaskRejected:
		answer["note"] = "No person has decided in time."
	default:
		answer["note"] = fmt.Sprintf("The question was not decided: its task is %s. %s", task.GetState(), task.GetError())
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return failure("%v", err)
	}
	return tool.Outcome{Text: string(data)}
}

// outcomeOf returns the outcome of a failed call, or the error of ctx if ctx has ended.
func outcomeOf(ctx context.Context, what string, err error) (tool.Outcome, error) {
	if ctx.Err() != nil {
		return tool.Outcome{}, ctx.Err()
	}
	return failure("%s: %v", what, err), nil
}
