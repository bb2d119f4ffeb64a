package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/tui"
	"switchyard/drawing/graph"
	"switchyard/drawing/svg"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// The formats of a drawing.
const (
	formatMermaid = "mermaid"
	formatDOT     = "dot"
	formatSVG     = "svg"
)

func newRunsGraph(sys *system) *cobra.Command {
	var (
		file       string
		everything bool
	)
	cmd := &cobra.Command{
		Use:   "graph RUN | --file FILE",
		Short: "Draw the graph of a run with the states of its tasks, or of a definition",
		Long: `Draws the graph of a run with the states of its tasks, or of a definition that has not
been run. Each task appears once, below its last parent; its other parents follow after
"also after". An only child is drawn directly below its parent. Large graphs are
abbreviated where tasks are alike, and cut after about 400 lines; --all draws everything.
The formats mermaid, dot (Graphviz) and svg always contain the whole graph.

✓ completed  ● running  ◐ assigned  ◌ queued  ‖ paused  ○ pending  – skipped  ✗ failed
† dead_letter  ! killed_oom  × killed  ? lost  ⊘ cancelled  ⊗ rejected  ■ stopped`,
		Args: arguments(0, 1, "RUN"),
	}
	cmd.Flags().StringVar(&file, "file", "", "draw this definition, or - for standard input")
	cmd.Flags().BoolVar(&everything, "all", false, "draw the whole graph")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON, formatMermaid, formatDOT, formatSVG)
	draw := func(name, heading string, nodes []graph.Node) error {
		var lines []string
		switch format.Value {
		case output.JSON:
			return output.WriteJSON(sys.stdout, graphItem{name, graphNodes(nodes)})
		case formatSVG:
			_, err := io.WriteString(sys.stdout, svg.Document(svg.Graph(graph.NewLayout(nodes), nodes, svg.GraphOptions{Name: "graph of " + name})))
			return err
		case formatMermaid:
			lines = output.Mermaid(nodes)
		case formatDOT:
			lines = output.DOT(name, nodes)
		default:
			drawn, whole := tui.Graph(nodes, everything, sys.dataStyle())
			lines = append([]string{heading, ""}, drawn...)
			if !whole {
				defer fmt.Fprintln(sys.screen, "the drawing is abbreviated; --all draws the whole graph")
			}
		}
		_, err := io.WriteString(sys.stdout, strings.Join(lines, "\n")+"\n")
		return err
	}
	ofRun := onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		run, err := a.RunWithoutOutput(ctx, args[0])
		if err != nil {
			return err
		}
		return draw(run.GetId(), tui.Summary(tui.StatusOf(run), sys.now(), sys.dataStyle()), graph.NodesOf(run, sys.now()))
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && file == "":
			return exit.Usagef("RUN is missing; --file FILE draws a definition")
		case len(args) == 1 && file != "":
			return exit.Usagef("name a RUN or --file, not both")
		case len(args) == 1:
			return ofRun(cmd, args)
		}
		d, err := readDocument(sys, file)
		if err != nil {
			return err
		}
		nodes := definedNodes(d.def)
		return draw(d.def.GetName(), fmt.Sprintf("workflow %s, %s", d.def.GetName(), words.Count(len(nodes), "task")), nodes)
	}
	return cmd
}

// graphItem is a graph as JSON prints it.
type graphItem struct {
	Name  string      `json:"name"`
	Nodes []graphNode `json:"nodes"`
}

type graphNode struct {
	Task      string   `json:"task"`
	State     string   `json:"state"`
	DependsOn []string `json:"dependsOn"`
	FansOut   bool     `json:"fansOut"`
	Finally   bool     `json:"finally"`
	Note      string   `json:"note"`
}

func graphNodes(nodes []graph.Node) []graphNode {
	isFinally := map[string]bool{}
	for _, n := range nodes {
		isFinally[n.Name] = n.Finally
	}
	items := make([]graphNode, 0, len(nodes))
	for _, n := range nodes {
		after := append([]string{}, n.After...)
		if n.Finally { // the others are drawn before it
			after = slices.DeleteFunc(after, func(name string) bool { return !isFinally[name] })
		}
		items = append(items, graphNode{n.Name, n.State, after, n.Many, n.Finally, n.Note})
	}
	return items
}

// definedNodes returns the tasks of a definition with the conditions that guard them.
func definedNodes(def *v1.Definition) []graph.Node {
	run := &v1.Run{Tasks: map[string]*v1.Task{}}
	for name, t := range v1.AllTasks(def) {
		run.Tasks[name] = &v1.Task{DependsOn: t.GetDependsOn(), Finally: v1.IsInFinally(def, name)}
	}
	nodes := graph.NodesOf(run, run.GetCreatedAt().AsTime())
	for i := range nodes {
		t := v1.TaskNamed(def, nodes[i].Name)
		nodes[i].Note, nodes[i].Many = strings.Join(definedNotes(t), ", "), t.GetForeach() != nil || t.GetParallel() != nil
	}
	return nodes
}

func definedNotes(t *v1.TaskDefinition) []string {
	notes := []string{t.GetType()}
	note := func(what, value string) {
		if value != "" {
			notes = append(notes, what+" "+value)
		}
	}
	if v := t.GetForeach(); v != nil {
		note("foreach", output.ShortText(v))
	}
	if v := t.GetParallel(); v != nil {
		note("parallel", output.ShortText(v))
	}
	note("when", t.GetWhen())
	note("if", t.GetCondition())
	if t.GetOnFailure() == "run" {
		notes = append(notes, "even after a failure")
	}
	return notes
}
