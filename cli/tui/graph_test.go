package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"switchyard/dev/golden"
	"switchyard/drawing/graph"
	v1 "switchyard/proto/switchyard/v1"
)

func TestGraph(t *testing.T) {
	run := nightly()
	run.Tasks["report"] = &v1.Task{State: "pending", DependsOn: []string{"publish", "gone", "deploy", "scan", "flaky"}}
	run.Tasks["check"] = &v1.Task{State: "pending", DependsOn: []string{"pack"}}
	run.Tasks["sign"] = &v1.Task{State: "paused", Reason: "approval", Error: "ship it?", DependsOn: []string{"check"}}
	count := int32(100)
	run.Tasks["each"] = &v1.Task{State: "running", Count: &count, Counts: map[string]int32{"completed": 37, "running": 4, "failed": 1}}
	nodes := graph.NodesOf(run, begin.Add(7*time.Second))
	golden.Check(t, "testdata/graph.golden", drawnAs(nodes, false, plain))
	golden.Check(t, "testdata/graph-color.golden", drawnAs(nodes, false, Style{Zone: time.UTC, Color: true}))
	golden.Check(t, "testdata/graph-definition.golden", drawnAs([]graph.Node{{Name: "a", Note: "shell"}, {Name: "b", After: []string{"a"}, Note: "shell, when always"}}, false, plain))
}

func drawnAs(nodes []graph.Node, everything bool, style Style) string {
	lines, _ := Graph(nodes, everything, style)
	return joined(lines)
}

// odd returns graphs of shapes that generated definitions have.
func odd() map[string][]graph.Node {
	shapes := map[string][]graph.Node{}
	for i := range 2000 {
		state := "completed"
		if i%500 == 250 {
			state = "failed"
		}
		shapes["wide"] = append(shapes["wide"], graph.Node{Name: fmt.Sprintf("w%04d", i), State: state})
	}
	join := graph.Node{Name: "join", State: "pending"}
	for _, n := range shapes["wide"] {
		join.After = append(join.After, n.Name)
	}
	shapes["join"] = append(slices.Clone(shapes["wide"]), join)
	for i := range 10_000 {
		link, rung, pin := graph.Node{Name: fmt.Sprintf("c%05d", i), State: "completed"}, graph.Node{Name: fmt.Sprintf("l%05d", i), State: "pending"}, graph.Node{Name: fmt.Sprintf("p%05d", i), State: "pending"}
		if i > 0 {
			link.After, rung.After = []string{fmt.Sprintf("c%05d", i-1)}, []string{fmt.Sprintf("l%05d", i-1)}
		}
		pin.After = []string{rung.Name}
		shapes["chain"] = append(shapes["chain"], link)
		shapes["ladder"] = append(shapes["ladder"], rung, pin)
	}
	for level := range 30 {
		for i := range 60 {
			n := graph.Node{Name: fmt.Sprintf("m%02d-%02d", level, i), State: "running"}
			if level > 0 {
				for j := range 60 {
					n.After = append(n.After, fmt.Sprintf("m%02d-%02d", level-1, j))
				}
			}
			shapes["mesh"] = append(shapes["mesh"], n)
		}
	}
	return shapes
}

func TestGraphOfOddShapes(t *testing.T) {
	for name, nodes := range odd() {
		t.Run(name, func(t *testing.T) {
			lines, whole := Graph(nodes, false, plain)
			if whole {
				t.Error("a cut drawing is told to be whole")
			}
			golden.Check(t, "testdata/graph-"+name+".golden", joined(lines))
			checkLines(t, lines, maxGraphLines+maxAlike*2+10)
			lines, whole = Graph(nodes, true, plain)
			if !whole {
				t.Error("a whole drawing is told to be cut")
			}
			checkLines(t, lines, 2*len(nodes))
		})
	}
}

// checkLines checks that there are at most most lines and that none is too long.
func checkLines(t *testing.T, lines []string, most int) {
	t.Helper()
	if len(lines) > most {
		t.Errorf("%d lines, want at most %d", len(lines), most)
	}
	for _, line := range lines {
		if width := ansi.StringWidth(line); width > maxLeft+2+stateWidth+2+maxNote+2+maxAfter*70 {
			t.Fatalf("a line of %d cells: %q", width, line)
		}
	}
}

// TestGraphDrawsEverythingInOrder checks for any graph that each task is drawn once, and after all its parents unless
// deep nesting moves it further down.
func TestGraphDrawsEverythingInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 60).Draw(t, "size")
		dense := rapid.IntRange(0, 4).Draw(t, "parents")
		nodes := make([]graph.Node, size)
		for i := range nodes {
			nodes[i] = graph.Node{Name: fmt.Sprintf("n%02d", i), State: rapid.SampledFrom([]string{"pending", "completed", "failed"}).Draw(t, "state")}
			for range min(i, rapid.IntRange(0, dense).Draw(t, "n")) {
				if p := fmt.Sprintf("n%02d", rapid.IntRange(0, i-1).Draw(t, "parent")); !slices.Contains(nodes[i].After, p) {
					nodes[i].After = append(nodes[i].After, p)
				}
			}
		}
		at, deferred := map[string]int{}, false
		whole, complete := Graph(nodes, true, plain)
		if !complete {
			t.Fatal("a whole drawing is told to be cut")
		}
		for i, line := range whole {
			fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("│├└─↓ ✓✗○", r) })
			if strings.Contains(line, "further down") {
				deferred = true
				continue
			}
			if _, twice := at[fields[0]]; twice {
				t.Fatalf("%s is drawn twice", fields[0])
			}
			at[fields[0]] = i
		}
		if len(at) != size {
			t.Fatalf("%d of %d are drawn", len(at), size)
		}
		if len(nodes) <= maxAlike {
			if cut, _ := Graph(nodes, false, plain); !slices.Equal(cut, whole) {
				t.Fatal("a small graph is cut")
			}
		}
		for _, n := range nodes {
			for _, parent := range n.After {
				if at[parent] > at[n.Name] && !deferred {
					t.Fatalf("%s is drawn before its parent %s", n.Name, parent)
				}
			}
		}
	})
}
