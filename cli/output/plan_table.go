package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// maxPlanned is the most tasks that one line of a plan names.
const maxPlanned = 5

// WritePlan writes a plan for people: a table of the tasks, followed by the reasons why nodes could not take them now.
func WritePlan(w io.Writer, plan *v1.PlanRunResponse) error {
	if _, err := fmt.Fprintf(w, "%s, %s; nothing has been started\n", plan.GetName(), words.Count(len(plan.GetTasks()), "task")); err != nil {
		return err
	}
	if len(plan.GetInput().GetFields()) > 0 {
		input, err := json.Marshal(plan.GetInput().AsMap())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "input %s\n", input); err != nil {
			return err
		}
	}
	rows := [][]string{{}, {"LEVEL", "TASK", "TYPE", "AFTER", "STARTS WHEN", "INSTANCES", "PLACEMENT"}}
	for _, t := range plan.GetTasks() {
		after := t.GetDependsOn()
		if more := len(after) - maxPlanned; more > 0 {
			after = append(after[:maxPlanned:maxPlanned], fmt.Sprintf("and %d more", more))
		}
		rows = append(rows, []string{
			strconv.Itoa(int(t.GetLevel())), t.GetTask(), t.GetType(), strings.Join(after, ", "),
			words.OneLine(t.GetStartsWhen()), words.OneLine(t.GetInstances()), words.OneLine(t.GetPlacement()),
		})
	}
	if err := WriteTable(w, rows); err != nil {
		return err
	}
	return writeRefusals(w, plan.GetTasks())
}

// writeRefusals writes which nodes could not take tasks now and why. Tasks with the same nodes and reasons share a
// paragraph.
func writeRefusals(w io.Writer, tasks []*v1.PlannedTask) error {
	var order []string
	alike := map[string][]string{}
	for _, t := range tasks {
		var text strings.Builder
		for _, n := range t.GetNodes() {
			if !n.GetFeasible() {
				fmt.Fprintf(&text, "  not on %s: %s\n", n.GetName(), words.OneLine(strings.Join(n.GetReasons(), "; ")))
			}
		}
		if text.Len() == 0 {
			continue
		}
		if alike[text.String()] == nil {
			order = append(order, text.String())
		}
		alike[text.String()] = append(alike[text.String()], t.GetTask())
	}
	for _, text := range order {
		names := alike[text]
		if more := len(names) - maxPlanned; more > 0 {
			names = append(names[:maxPlanned:maxPlanned], fmt.Sprintf("and %d more", more))
		}
		if _, err := fmt.Fprintf(w, "\n%s\n%s", strings.Join(names, ", "), text); err != nil {
			return err
		}
	}
	return nil
}
