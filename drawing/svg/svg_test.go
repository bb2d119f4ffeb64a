package svg

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/golden"
	"switchyard/drawing/graph"
	"switchyard/drawing/timeline"
	v1 "switchyard/proto/switchyard/v1"
)

var begin = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func after(seconds float64) *timestamppb.Timestamp {
	return timestamppb.New(begin.Add(time.Duration(seconds * float64(time.Second))))
}

// hostile is a text that tries to end an element, run a script, colour a terminal and reverse the
// line.
const hostile = "</title></script><script>alert(1)</script><svg onload=alert(2)> \"' \x1b[31mred\x1b]0;t\a \u202egnp.exe\u2069 \xff\x00"

// nightly returns a run with a task in every kind of state, and hostile texts.
func nightly() *v1.Run {
	attempt := &v1.Attempt{Node: "local-1", State: "failed", Error: hostile, AssignedAt: after(2.6), StartedAt: after(2.7), CompletedAt: after(3.2)}
	return &v1.Run{
		Id: "nightly-4g5h6jkm", Name: "nightly", State: "running", CreatedAt: after(0),
		Tasks: map[string]*v1.Task{
			"fetch":   {State: "completed", Node: "local-1", AssignedAt: after(0.5), StartedAt: after(0.7), CompletedAt: after(2.5)},
			"build":   {State: "running", Node: hostile, Attempt: 1, Error: hostile, DependsOn: []string{"fetch"}, Attempts: []*v1.Attempt{attempt}, ScheduledAfter: after(4), QueuedAt: after(4), AssignedAt: after(4.4), StartedAt: after(5)},
			"lint":    {State: "failed", Error: hostile, Node: "local-1", DependsOn: []string{"fetch"}, AssignedAt: after(2.6), StartedAt: after(2.7), CompletedAt: after(3)},
			"pack":    {State: "assigned", Node: "local-1", DependsOn: []string{"fetch"}, AssignedAt: after(4)},
			"scan":    {State: "queued", Error: hostile, DependsOn: []string{"fetch"}},
			"flaky":   {State: "queued", Attempt: 1, Node: "local-2", Error: "exit code 1", DependsOn: []string{"fetch"}, Attempts: []*v1.Attempt{attempt}, ScheduledAfter: after(9)},
			"locked":  {State: "queued", Error: "waits for the lock db, held by other-1[deploy]", DependsOn: []string{"fetch"}},
			"ask":     {State: "paused", Reason: "approval", Error: "ship it?", DependsOn: []string{"fetch"}, AssignedAt: after(3), StartedAt: after(3)},
			"deploy":  {State: "pending", DependsOn: []string{"build", "pack", "scan"}},
			"publish": {State: "skipped", Reason: "upstream", DependsOn: []string{"lint"}, CompletedAt: after(3)},
			"report":  {State: "pending", DependsOn: []string{"fetch", "deploy", "publish"}},
			"a-name-that-is-much-longer-than-any-box-has-room-for-in-a-drawing": {State: "pending", DependsOn: []string{"report"}},
			"clean": {State: "running", Finally: true, Node: "local-1", AssignedAt: after(6), StartedAt: after(6)},
			"few": {State: "running", Count: proto.Int32(2), Counts: map[string]int32{"completed": 1, "failed": 1}, DependsOn: []string{"fetch"}, Instances: []*v1.Instance{
				{Index: 0, State: "completed", Node: "n", AssignedAt: after(3), StartedAt: after(3), CompletedAt: after(4)},
				{Index: 1, State: "failed", Node: "n", Error: hostile, AssignedAt: after(3), StartedAt: after(3), CompletedAt: after(5)},
			}},
			"many": {State: "running", Count: proto.Int32(10_000), Counts: map[string]int32{"completed": 5000, "failed": 3, "queued": 4997}, DependsOn: []string{"fetch"}},
		},
	}
}

// strip returns the lane of a task with 10,000 instances, half of them ended.
func strip(a timeline.Axis) *timeline.Lane {
	lane := timeline.NewLane(a.Scale(StripCells))
	for i := range 10_000 {
		from := begin.Add(time.Duration(2500+i/2) * time.Millisecond)
		bar := timeline.Bar{State: "queued", Spans: []timeline.Span{{Kind: timeline.Queue, From: begin.Add(2500 * time.Millisecond), To: from}}}
		if i < 5000 {
			bar.State = "completed"
			if i%2000 == 0 {
				bar.State = "failed"
			}
			bar.Spans = append(bar.Spans, timeline.Span{Kind: timeline.Run, From: from, To: from.Add(time.Second), Failed: bar.State == "failed"})
		}
		lane.Add(bar)
	}
	return lane
}

func drawn() (nodes []graph.Node, l *graph.Layout, rows []Row, a timeline.Axis) {
	run, now := nightly(), begin.Add(7*time.Second)
	nodes = graph.NodesOf(run, time.Time{})
	l = graph.NewLayout(nodes)
	a = timeline.NewAxis(begin, now, true)
	return nodes, l, Rows(run, nodes, l.Order, map[string]*timeline.Lane{"many": strip(a)}, now), a
}

// checkMarkup checks that markup is well-formed and has no scripts, handlers or foreign addresses.
func checkMarkup(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if name := strings.ToLower(e.Name.Local); name == "script" || name == "image" || name == "foreignobject" {
			t.Errorf("has an element %s", name)
		}
		for _, attr := range e.Attr {
			if name := strings.ToLower(attr.Name.Local); strings.HasPrefix(name, "on") || name == "style" {
				t.Errorf("has an attribute %s=%q", name, attr.Value)
			}
		}
	}
	for _, bad := range []string{"\x1b", "\u202e", "\x00", "\a", "url(h", "@import"} {
		if strings.Contains(text, bad) {
			t.Errorf("has %q", bad)
		}
	}
}

func TestGraphMatchesGoldenFile(t *testing.T) {
	nodes, l, _, _ := drawn()
	o := GraphOptions{Name: "graph of nightly", Href: func(task string) string { return "/ui/runs/nightly/tasks/" + task }}
	text := Graph(l, nodes, o)
	checkMarkup(t, text)
	golden.Check(t, "testdata/graph.svg", Document(Graph(l, nodes, GraphOptions{Name: "graph of nightly"})))
	checkMarkup(t, Document(text))
	for i := range nodes {
		one := Node(l, nodes, i, o)
		checkMarkup(t, one)
		if !strings.Contains(text, one) || !strings.HasPrefix(one, `<g id="n-`+nodes[i].Name+`"`) {
			t.Errorf("%s is drawn otherwise alone: %s", nodes[i].Name, one)
		}
	}
}

func TestTimelineMatchesGoldenFiles(t *testing.T) {
	_, _, rows, a := drawn()
	o := TimelineOptions{Name: "timeline of nightly", Href: func(r Row) string { return "/ui/" + r.Name }}
	text := Timeline(rows, a, o)
	checkMarkup(t, text)
	golden.Check(t, "testdata/timeline.html", strings.ReplaceAll(text, "<div", "\n<div"))
	chart := Document(TimelineChart(rows, a, TimelineOptions{Name: "timeline of nightly"}))
	checkMarkup(t, chart)
	golden.Check(t, "testdata/timeline.svg", chart)
	for _, r := range rows {
		one := Lane(r, a, o)
		if !strings.Contains(text, one) || !strings.Contains(one, `id="t-`+r.Name+`"`) {
			t.Errorf("%s is drawn otherwise alone: %s", r.Name, one)
		}
	}
	for _, want := range []string{`class="k-queue r-node open" `, `class="k-queue r-backoff open"`, `class="k-queue r-lock open"`, `class="k-run r-approval open"`, `class="k-run-failed"`, `✗0</text>`, "5000/10000 done, 3 failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestDrawingChangesRarelyWhileARunIsOpen checks that a drawing stays the same until its tasks, its
// axis or the step of the axis changes.
func TestDrawingChangesRarelyWhileARunIsOpen(t *testing.T) {
	run := nightly()
	nodes := graph.NodesOf(run, time.Time{})
	order := graph.Order(nodes)
	drawings := map[string]bool{}
	for ms := 62_000; ms < 64_000; ms += 100 {
		a := timeline.NewAxis(begin, begin.Add(time.Duration(ms)*time.Millisecond), true)
		rows := Rows(run, nodes, order, nil, a.Floor(begin.Add(time.Duration(ms)*time.Millisecond)))
		drawings[Timeline(rows, a, TimelineOptions{})] = true
	}
	if len(drawings) > 3 {
		t.Errorf("%d drawings in two seconds", len(drawings))
	}
}

func TestEveryReasonHasAPattern(t *testing.T) {
	for _, word := range timeline.Reasons() {
		if !strings.Contains(Hatches(), `id="h-`+word+`"`) {
			t.Errorf("%s has none", word)
		}
	}
}

func TestEveryStateHasAColour(t *testing.T) {
	for _, state := range v1.TaskStates() {
		if !strings.Contains(Rules, "."+stateClass(state)+",") && !strings.Contains(Rules, "."+stateClass(state)+" {") {
			t.Errorf("%s has none", state)
		}
	}
}

// TestLargeDrawingsAreSmall checks the sizes of a fan-out with 10,000 instances and of a graph with
// 5,000 tasks.
func TestLargeDrawingsAreSmall(t *testing.T) {
	_, _, rows, a := drawn()
	for _, r := range rows {
		if n := len(Lane(r, a, TimelineOptions{})); n > 8<<10 {
			t.Errorf("%s takes %d bytes", r.Name, n)
		}
	}
	var nodes []graph.Node
	for i := range 5000 {
		n := graph.Node{Name: fmt.Sprintf("task-%04d", i), State: "completed"}
		if i > 0 {
			n.After = []string{fmt.Sprintf("task-%04d", i/2)}
		}
		nodes = append(nodes, n)
	}
	if n := len(Graph(graph.NewLayout(nodes), nodes, GraphOptions{})); n > 2<<20 {
		t.Errorf("5,000 tasks take %d bytes", n)
	}
}

// TestGraphOfFourColumnsFitsAPage checks that the graph of a run is no wider than the text of a page of the documentation, 752 pixels, unless
// its names are long.
func TestGraphOfFourColumnsFitsAPage(t *testing.T) {
	chain := func(last string) string {
		nodes := []graph.Node{
			{Name: "a", State: v1.TaskCompleted}, {Name: "b", State: v1.TaskCompleted, After: []string{"a"}},
			{Name: "c", State: v1.TaskCompleted, After: []string{"b"}}, {Name: last, State: v1.TaskCompleted, After: []string{"c"}},
		}
		return Graph(graph.NewLayout(nodes), nodes, GraphOptions{})
	}
	if text := chain("notify-failure"); !strings.Contains(text, `width="748"`) {
		t.Errorf("the width differs: %s", text[:200])
	}
	if name := "a-name-with-24-letters-x"; !strings.Contains(chain(name), name+"</text>") {
		t.Error("a name that large boxes have room for is cut")
	}
}
