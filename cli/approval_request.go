package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"connectrpc.com/connect"

	"switchyard/cli/client"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// describeApproval writes what a waiting approval asks of people: its approvers, its inputs, and the command that decides. It writes
// nothing about other tasks, nor if the caller cannot read the definition of the run.
func describeApproval(ctx context.Context, w io.Writer, a *client.Client, run, name, state string) error {
	if state != v1.TaskPaused {
		return nil
	}
	res, err := a.Runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: run}))
	if err != nil {
		return nil
	}
	task := name
	if of, _, isInstance := names.ParseInstanceName(name); isInstance {
		task = of
	}
	asks := v1.TaskNamed(res.Msg.GetDefinition(), task)
	if asks.GetType() != v1.TypeApproval {
		return nil
	}
	spec := definition.Approval(asks)
	who := cmp.Or(definition.ApproverText(spec.GetApprovers()), "everyone who can access the run")
	if spec.GetApprovers().GetNot() == v1.NotSubmitter {
		who += ", except who submitted the run"
	}
	if spec.GetApprovals() > 1 {
		who += fmt.Sprintf("; %d people must approve", spec.GetApprovals())
	}
	rows := [][]string{{}, {"approvers", words.OneLine(who)}}
	command := "switchyard runs approve " + run + " " + output.ShellWord(name)
	for _, input := range slices.Sorted(maps.Keys(spec.GetInputs())) {
		in := spec.GetInputs()[input]
		rows = append(rows, []string{"input", input + ": " + words.OneLine(definition.DescribeInput(in))})
		if in.GetRequired() {
			command += " --input " + input + "=VALUE"
		} else {
			command += " [--input " + input + "=VALUE]"
		}
	}
	return output.WriteTable(w, append(rows, []string{"decide", command}, []string{"", "switchyard runs reject " + run + " " + output.ShellWord(name)}))
}
