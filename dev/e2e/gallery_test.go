package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"switchyard/dev/golden"
	"switchyard/docs/site"
	"switchyard/drawing/graph"
	"switchyard/drawing/svg"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// gallery holds the examples in the order of the index, by what they show.
var gallery = []struct {
	title string
	names []string
}{
	{"A whole pipeline", []string{"build-and-deploy"}},
	{"Order, failures and retries", []string{"diamond", "triggers", "retry-until-success", "notify-failure", "notify-failures"}},
	{"Data", []string{"inputs", "context", "defaults", "secrets", "cache", "artifacts", "workspace"}},
	{"Many instances", []string{"fan-out", "matrix", "batches", "gang"}},
	{"Placement and locks", []string{"placement", "locks"}},
	{"Schedules, approvals and other workflows", []string{"schedule", "approval", "child-run", "a2a-greeting"}},
	{"Containers and machines", []string{"containers", "machines"}},
	{"Agents", []string{"agents", "relay"}},
}

// generated is in every page that this file writes.
const generated = "<!-- Written from dev/examples by the tests of dev/e2e, with -update. Do not edit. -->"

// TestGallery compares the pages of the examples, and their index, with those that it makes of the definitions and of the outcomes
// that testExamples expects.
func TestGallery(t *testing.T) {
	t.Parallel()
	var index strings.Builder
	fmt.Fprintf(&index, "# Examples\n\n%s\n\nEach example has a page with its definition, the commands to run it, and the graph of a run. "+
		"A test runs all of\nthem and draws the graphs. The files are in [dev/examples](../dev/examples), and in a\npackage in `/usr/share/doc/switchyard/examples`.\n\n"+
		"`switchyard submit FILE --watch` runs a definition on a fleet. `switchyard run FILE` needs no fleet: it starts everything\nthat the run needs, "+
		"and ends with the run.\n", generated)
	want := []string{}
	for _, group := range gallery {
		fmt.Fprintf(&index, "\n## %s\n\n| Example | Shows |\n|---|---|\n", group.title)
		for _, name := range group.names {
			e := readExample(t, name)
			fmt.Fprintf(&index, "| [%s](examples/%s.md) | %s |\n", name, name, e.definition.GetDescription())
			golden.Check(t, documentOf(name+".md"), e.page(t))
			want = append(want, name+".md", name+".svg")
		}
	}
	golden.Check(t, filepath.Join(repository, "docs/examples.md"), index.String())
	for pattern, suffix := range map[string]string{"docs/examples/*": "", "dev/examples/*.yaml": ".md"} {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if name := filepath.Base(file); !slices.Contains(want, strings.TrimSuffix(name, ".yaml")+suffix) {
				t.Errorf("%s is not in the gallery", name)
			}
		}
	}
}

// documentOf returns the path of a file of the gallery.
func documentOf(name string) string { return filepath.Join(repository, "docs/examples", name) }

// checkPicture compares the picture of an example with the graph of a run, which is JSON. The picture shows
// only what is the same in every run of the example. Nodes, and errors that name them, are not.
func checkPicture(t *testing.T, name, text string) {
	t.Helper()
	var run v1.Run
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), &run); err != nil {
		t.Fatal(err)
	}
	for name, task := range run.GetTasks() {
		run.Tasks[name] = &v1.Task{State: task.GetState(), Reason: task.GetReason(), DependsOn: task.GetDependsOn(), Finally: task.GetFinally(), Count: task.Count, Counts: task.GetCounts()}
	}
	nodes := graph.NodesOf(&run, run.GetCompletedAt().AsTime())
	golden.Check(t, documentOf(name+".svg"), svg.Document(svg.Graph(graph.NewLayout(nodes), nodes, svg.GraphOptions{Name: "graph of a run of " + name})))
}

// example is a definition in dev/examples.
type example struct {
	name string
	// comment is the text above the definition, and text the rest of the file.
	comment, text string
	definition    *v1.Definition
	want          expectation
}

func readExample(t *testing.T, name string) example {
	t.Helper()
	e := example{name: name}
	text, err := os.ReadFile(filepath.Join(repository, "dev/examples", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if e.definition, err = definition.Parse(name, text); err != nil {
		t.Fatal(err)
	}
	e.want = readExpectation(t, name)
	lines := strings.SplitAfter(string(text), "\n")
	end := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "#") })
	for _, line := range lines[:end] {
		e.comment += strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
	}
	e.text = strings.Join(lines[end:], "")
	if e.definition.GetDescription() == "" || e.comment == "" {
		t.Errorf("%s needs a description, and a comment at its top", name)
	}
	return e
}

// page returns the page of an example.
func (e example) page(t *testing.T) string {
	t.Helper()
	file := "dev/examples/" + e.name + ".yaml"
	text, see, _ := strings.Cut(e.comment, "See docs/")
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n%s\n\n", e.name, generated, e.definition.GetDescription())
	fmt.Fprintf(&b, "![%s](%s.svg)\n\n", e.alternative(), e.name)
	b.WriteString(fenced(text, "sh not-run: a test runs the definition"))
	if !strings.Contains(e.comment, file) {
		fmt.Fprintf(&b, "```sh not-run: a test runs the definition\nswitchyard submit %s --watch\n```\n\n", file)
	}
	fmt.Fprintf(&b, "## The definition\n\n```yaml %s\n%s```\n\n", file, e.text)
	fmt.Fprintf(&b, "## The outcome\n\nThe run ends as `%s`; `switchyard run` and `switchyard submit --watch` exit with %d.\n\n", e.want.Run["state"], e.want.Exit)
	columns := "| Task | Ends as | Leaves |\n|---|---|---|\n"
	if !slices.ContainsFunc(e.order(), func(task string) bool { return e.leaves(task) != "" }) {
		columns = "| Task | Ends as |\n|---|---|\n"
	}
	b.WriteString(columns)
	for _, task := range e.order() {
		if e.task(task)["state"] == nil {
			t.Errorf("%s.want.json does not state how %s ends", e.name, task)
		}
		fmt.Fprintf(&b, "| `%s` | %s |", task, e.end(task))
		if strings.Contains(columns, "Leaves") {
			fmt.Fprintf(&b, " %s |", e.leaves(task))
		}
		b.WriteString("\n")
	}
	if context, ok := e.want.Run["context"]; ok {
		fmt.Fprintf(&b, "\nIts context is then %s.\n", code(context))
	}
	if see == "" {
		t.Errorf("the comment of %s names no document", e.name)
	}
	fmt.Fprintf(&b, "\nSee %s", linked(t, "docs/"+see))
	return b.String()
}

// fenced returns the paragraphs of a comment as Markdown. Indented lines are commands.
func fenced(comment, info string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(comment), "\n\n") {
		if commands, ok := strings.CutPrefix("\n"+paragraph, "\n  "); ok {
			paragraph = "```" + info + "\n" + strings.ReplaceAll(commands, "\n  ", "\n") + "\n```"
		}
		b.WriteString(paragraph + "\n\n")
	}
	return b.String()
}

// linked returns a text with links in place of the paths of documents. Their texts are the headings.
func linked(t *testing.T, text string) string {
	t.Helper()
	return regexp.MustCompile(`docs/([\w/-]+\.md)(#[\w-]+)?`).ReplaceAllStringFunc(text, func(target string) string {
		file, anchor, _ := strings.Cut(target, "#")
		source, err := os.ReadFile(filepath.Join(repository, file))
		if err != nil {
			t.Fatal(err)
		}
		page := site.Parse(file, source)
		title := page.Title
		for _, h := range page.Headings {
			if h.ID == anchor {
				title += ": " + h.Text
			}
		}
		return "[" + title + "](../" + strings.TrimPrefix(target, "docs/") + ")"
	})
}

// order returns the names of the tasks, parents before children.
func (e example) order() []string {
	tasks := map[string]*v1.Task{}
	for name, defined := range e.definition.GetTasks() {
		tasks[name] = &v1.Task{DependsOn: defined.GetDependsOn()}
	}
	return graph.ByDepth(tasks)
}

// task returns what testExamples expects of a task.
func (e example) task(name string) map[string]any {
	tasks, _ := e.want.Run["tasks"].(map[string]any)
	task, _ := tasks[name].(map[string]any)
	return task
}

// end returns how a task ends.
func (e example) end(name string) string {
	task := e.task(name)
	counts := map[string]int{}
	instances, _ := task["counts"].(map[string]any)
	for state, n := range instances {
		counts[state] = int(n.(float64))
	}
	text := fmt.Sprint(task["state"])
	if reason, ok := task["reason"].(string); ok && reason != text {
		text += " (`" + reason + "`)"
	}
	if len(counts) > 0 {
		text += ", instances: " + words.CountStates(counts)
	}
	if attempt, ok := task["attempt"].(float64); ok && attempt > 0 {
		text += fmt.Sprintf(", attempt %d", int(attempt))
	}
	return text
}

// leaves returns what a task prints and puts out, as far as testExamples expects it.
func (e example) leaves(name string) string {
	var parts []string
	result, _ := e.task(name)["result"].(map[string]any)
	if output, ok := result["output"]; ok {
		parts = append(parts, "output "+code(output))
	} else if text, _ := result["stdout"].(string); text != "" {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for i, line := range lines {
			lines[i] = code(line)
		}
		parts = append(parts, strings.Join(lines, "<br>"))
	}
	if text, ok := e.task(name)["error"].(string); ok {
		parts = append(parts, "error "+code(text))
	}
	return strings.Join(parts, "<br>")
}

// code returns a value as a piece of code in a table.
func code(value any) string {
	text, isText := value.(string)
	if !isText {
		data, _ := json.Marshal(value)
		text = string(data)
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// alternative describes the picture of an example in words.
func (e example) alternative() string {
	var parts []string
	for _, name := range e.order() {
		task := e.task(name)
		text := fmt.Sprintf("%s %s", name, strings.ReplaceAll(fmt.Sprint(task["state"]), "_", " "))
		if parents := e.definition.GetTasks()[name].GetDependsOn(); len(parents) > 0 {
			text += " after " + strings.Join(parents, ", ")
		}
		parts = append(parts, text)
	}
	return "Graph of a run: " + strings.Join(parts, "; ")
}
