package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// showTask shows one task or instance of a run.
func showTask(ctx context.Context, sys *system, a *client.Client, run, name, format string) error {
	id, task, item, err := readTask(ctx, a, run, name)
	if err != nil {
		return err
	}
	if format == output.Text {
		if err := describeTask(sys.stdout, id, name, item, task, sys); err != nil {
			return err
		}
		return describeApproval(ctx, sys.stdout, a, id, name, task.GetState())
	}
	text, err := output.TaskJSON(task)
	if err != nil {
		return err
	}
	if format == output.JSON {
		text = output.Indented(text, "")
	}
	_, err = sys.stdout.Write(append(text, '\n'))
	return err
}

// readTask returns the ID of the run and a task of it. It returns an instance in the form of a task, with its item.
func readTask(ctx context.Context, a *client.Client, run, name string) (id string, task *v1.Task, item string, err error) {
	of, index, instance := names.ParseInstanceName(name)
	if !instance {
		of = name
	}
	page, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: run, Tasks: []string{of}, Brief: instance})
	if err != nil {
		return "", nil, "", err
	}
	id, task = page.GetRun().GetId(), page.GetRun().GetTasks()[of]
	switch {
	case task == nil:
		return "", nil, "", &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("run %s has no task %q", id, of), Hint: "`switchyard runs get " + id + "` shows its tasks"}
	case !instance:
		return id, task, "", nil
	}
	list, err := client.Call(ctx, a, a.Runs.ListInstances, &v1.ListInstancesRequest{Id: id, Task: of, PageSize: 1, First: int32(index)})
	if err != nil {
		return "", nil, "", err
	}
	if len(list.GetItems()) == 0 {
		return "", nil, "", &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("task %s of run %s has no instance %d; it has %d", of, id, index, task.GetCount())}
	}
	one := list.GetItems()[0]
	return id, v1.InstanceTask(task, one), one.GetItem(), nil
}

// describeTask writes a task, its attempts and its results for people.
func describeTask(w io.Writer, run, name, item string, t *v1.Task, sys *system) error {
	tried, took, about := words.Attempt(t), words.Elapsed(t, sys.now()), words.Note(t, sys.now())
	rows := [][]string{{"task", name}, {"item", item}, {"run", run}, {"state", t.GetState()}, {"reason", t.GetReason()}, {"note", about}, {"type", t.GetType()},
		{"after", strings.Join(t.GetDependsOn(), ", ")}, {"node", t.GetNode()}, {"attempt", tried}, {"runs as", words.Workload(t.GetWorkload())}, {"lease until", sys.formatTime(t.GetLeaseUntil())},
		{"created", sys.formatTime(t.GetCreatedAt())}, {"queued", sys.formatTime(t.GetQueuedAt())}, {"assigned", sys.formatTime(t.GetAssignedAt())}, {"started", sys.formatTime(t.GetStartedAt())}, {whenEnded(t), sys.formatTime(t.GetCompletedAt())}, {"dead letter", sys.formatTime(t.GetDeadLetteredAt())}, {"elapsed", took}}
	r := t.GetResult()
	if r != nil && r.GetExitCode() >= 0 && t.GetCompletedAt() != nil {
		rows = append(rows, []string{"exit code", exitText(t)})
	}
	if r.GetCpuSeconds() > 0 || r.GetPeakMemoryMb() > 0 {
		rows = append(rows, []string{"used", fmt.Sprintf("%.1f s of CPU, %.0f MiB at most", r.GetCpuSeconds(), r.GetPeakMemoryMb())})
	}
	for _, a := range r.GetArtifacts() {
		rows = append(rows, []string{"artifact", fmt.Sprintf("%s, %s in %s (switchyard runs artifacts get %s %s %s)", a.GetName(), words.Size(a.GetSize()), words.Count(int(a.GetFiles()), "file"), run, output.ShellWord(name), output.ShellWord(a.GetName()))})
	}
	rows = append(rows, []string{"warning", r.GetWarning()}, []string{"agent", agentText(r.GetAgent())})
	said := rows[:0]
	for _, row := range rows {
		if row[1] = words.OneLine(row[1]); row[1] != "" {
			said = append(said, row)
		}
	}
	if err := output.WriteTable(w, said); err != nil {
		return err
	}
	if err := describeAttempts(w, t.GetAttempts(), sys); err != nil {
		return err
	}
	var lines []string
	for _, object := range []struct {
		name   string
		fields *structpb.Struct
	}{{"output", r.GetOutput()}, {"merged into the context of the run", r.GetContextUpdate()}} {
		if len(object.fields.GetFields()) == 0 {
			continue
		}
		text, err := json.MarshalIndent(object.fields.AsMap(), "  ", "  ")
		if err != nil {
			return err
		}
		lines = append(lines, "", object.name, "  "+string(text))
	}
	for _, stream := range []struct {
		name, text string
		cut        bool
	}{{"standard output", r.GetStdout(), r.GetStdoutTruncated()}, {"standard error", r.GetStderr(), r.GetStderrTruncated()}} {
		if stream.text == "" {
			continue
		}
		heading := stream.name
		if stream.cut {
			heading = "end of " + heading + fmt.Sprintf(" (all output: switchyard runs logs %s %s)", run, output.ShellWord(name))
		}
		lines = append(lines, "", heading)
		for line := range strings.Lines(stream.text) {
			lines = append(lines, "  "+words.Plain(line))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// exitText returns the exit code of an ended task, and names the instance that it comes from.
func exitText(t *v1.Task) string {
	code, signal := t.GetResult().GetExitCode(), t.GetResult().GetSignal()
	switch {
	case t.Count != nil && code != 0:
		return fmt.Sprintf("%d, from the first instance that failed", code)
	case signal != "":
		return fmt.Sprintf("%d %s", code, signal)
	}
	return strconv.Itoa(int(code))
}

// describeAttempts lists the ended attempts of a task.
func describeAttempts(w io.Writer, attempts []*v1.Attempt, sys *system) error {
	if len(attempts) == 0 {
		return nil
	}
	heading := []string{"ATTEMPT", "STATE", "NODE", "STARTED", "ELAPSED", "EXIT CODE", "NOTE"}
	withPlace := slices.ContainsFunc(attempts, func(a *v1.Attempt) bool { return placeOf(a) != "" })
	if withPlace {
		heading = slices.Insert(heading, 3, "ON")
	}
	rows := [][]string{{}, heading}
	for _, a := range attempts {
		took, exit := "", ""
		if a.GetStartedAt() != nil && a.GetCompletedAt() != nil {
			took = words.Duration(max(0, a.GetCompletedAt().AsTime().Sub(a.GetStartedAt().AsTime()).Round(time.Millisecond)))
		}
		if a.GetExitCode() >= 0 {
			exit = strconv.Itoa(int(a.GetExitCode()))
		}
		about := words.OneLine(a.GetError())
		if about == "" {
			about = a.GetReason()
		}
		row := []string{strconv.Itoa(int(a.GetAttempt())), a.GetState(), a.GetNode(), sys.formatTime(a.GetStartedAt()), took, exit, about}
		if withPlace {
			row = slices.Insert(row, 3, placeOf(a))
		}
		rows = append(rows, row)
	}
	return output.WriteTable(w, rows)
}

// whenEnded returns the heading for the end of a task: a task on a lost node may still come back.
func whenEnded(t *v1.Task) string {
	if v1.IsTaskAway(t.GetState(), t.GetNotice()) {
		return "lost since"
	}
	return "ended"
}

// placeOf returns what an attempt held on its node, such as "GPU 0 1, NUMA 0, container 3f2a9c0d1e4b".
func placeOf(a *v1.Attempt) string {
	var parts []string
	if len(a.GetGpus()) > 0 {
		parts = append(parts, "GPU "+strings.Trim(fmt.Sprint(a.GetGpus()), "[]"))
	}
	if a.NumaNode != nil {
		parts = append(parts, fmt.Sprintf("NUMA %d", a.GetNumaNode()))
	}
	if a.GetContainer() != "" {
		parts = append(parts, "container "+words.OneLine(a.GetContainer()))
	}
	return strings.Join(parts, ", ")
}
