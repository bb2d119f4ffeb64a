package graph

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawGraph draws an acyclic graph of arbitrary shape with parents before children.
func drawGraph(t *rapid.T, most int) []Node {
	size := rapid.IntRange(0, most).Draw(t, "size")
	dense := rapid.IntRange(0, 5).Draw(t, "parents")
	nodes := make([]Node, size)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("n%03d", i*37%1000)
		for range min(i, rapid.IntRange(0, dense).Draw(t, "n")) {
			nodes[i].After = append(nodes[i].After, nodes[rapid.IntRange(0, i-1).Draw(t, "parent")].Name)
		}
	}
	return nodes
}

func TestNoTwoBoxesOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLayout(drawGraph(t, 60))
		for i, a := range l.Boxes {
			if a.Column < 0 || a.Column >= l.Columns || a.Row < 0 || a.Row+1 > l.Rows {
				t.Fatalf("%+v lies outside of %d columns and %v rows", a, l.Columns, l.Rows)
			}
			for _, b := range l.Boxes[:i] {
				if a.Column == b.Column && a.Row < b.Row+1 && b.Row < a.Row+1 {
					t.Fatalf("%+v and %+v overlap", a, b)
				}
			}
		}
	})
}

// reached returns the boxes that the steps of a link lead to.
func reached(l *Layout, link Link) map[int]bool {
	found := map[int]bool{}
	for _, child := range link.Far {
		found[child] = true
	}
	type end struct {
		column int
		row    float64
	}
	from := l.Boxes[link.From]
	open := []end{{from.Column, from.Row + 0.5}}
	for len(open) > 0 {
		at := open[0]
		open = open[1:]
		for _, s := range link.Steps {
			if s.Column != at.column || s.From != at.row {
				continue
			}
			if s.Through {
				open = append(open, end{s.Column + 1, s.To})
				continue
			}
			for i, b := range l.Boxes {
				if b.Column == s.Column+1 && b.Row+0.5 == s.To {
					found[i] = true
				}
			}
		}
	}
	return found
}

// TestEveryEdgeGoesForward checks that the links draw exactly the edges of the graph, each to a
// later column.
func TestEveryEdgeGoesForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawGraph(t, 40)
		l := NewLayout(nodes)
		want, got := make([]map[int]bool, len(nodes)), make([]map[int]bool, len(nodes))
		place := map[string]int{}
		for i, n := range nodes {
			place[n.Name], want[i], got[i] = i, map[int]bool{}, map[int]bool{}
		}
		for i, n := range nodes {
			for _, parent := range n.After {
				want[place[parent]][i] = true
				if l.Boxes[place[parent]].Rank >= l.Boxes[i].Rank || l.Boxes[place[parent]].Column >= l.Boxes[i].Column {
					t.Fatalf("%s does not stand after %s", n.Name, parent)
				}
			}
		}
		for _, link := range l.Links {
			got[link.From] = reached(l, link)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("edges: got %v, want %v", got, want)
		}
	})
}

func TestLayoutIsTheSameForAnyOrderOfNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawGraph(t, 40)
		shuffled := rapid.Permutation(nodes).Draw(t, "shuffled")
		l, other := NewLayout(nodes), NewLayout(shuffled)
		boxes := map[string]Box{}
		for i, n := range nodes {
			boxes[n.Name] = l.Boxes[i]
		}
		for i, n := range shuffled {
			if boxes[n.Name] != other.Boxes[i] {
				t.Fatalf("%s is at %+v, and at %+v when shuffled", n.Name, boxes[n.Name], other.Boxes[i])
			}
		}
		if l.Columns != other.Columns || l.Rows != other.Rows || len(l.Links) != len(other.Links) {
			t.Fatal("the size differs")
		}
		for at, i := range l.Order {
			if nodes[i].Name != shuffled[other.Order[at]].Name {
				t.Fatal("the order differs")
			}
		}
	})
}

// TestLayoutIsLinear checks that the drawing has linear size even if every edge spans the whole
// graph.
func TestLayoutIsLinear(t *testing.T) {
	for name, nodes := range shapes() {
		t.Run(name, func(t *testing.T) {
			l := NewLayout(nodes)
			edges, steps := 0, 0
			for _, n := range nodes {
				edges += len(n.After)
			}
			for _, link := range l.Links {
				steps += len(link.Steps) + len(link.Far)
			}
			if most := (bendsPerEdge + 1) * (len(nodes) + edges); steps > most {
				t.Errorf("%d steps for %d nodes and %d edges", steps, len(nodes), edges)
			}
			if len(l.Order) != len(nodes) {
				t.Errorf("%d of %d are in the order", len(l.Order), len(nodes))
			}
		})
	}
}

// shapes returns large graphs of awkward shapes.
func shapes() map[string][]Node {
	found := map[string][]Node{"static": static(5000, 2)}
	for i := range 3000 {
		n := Node{Name: fmt.Sprintf("c%04d", i)}
		if i > 0 {
			n.After = []string{fmt.Sprintf("c%04d", i-1), fmt.Sprintf("c%04d", i/2), "c0000"}
		}
		found["chain with long edges"] = append(found["chain with long edges"], n)
		found["single nodes"] = append(found["single nodes"], Node{Name: n.Name})
	}
	join := slices.Clone(found["single nodes"])
	last := Node{Name: "last"}
	for _, n := range join {
		last.After = append(last.After, n.Name)
	}
	found["join"] = append(join, last)
	for level := range 20 {
		for i := range 40 {
			n := Node{Name: fmt.Sprintf("m%02d-%02d", level, i)}
			for j := range 40 {
				if level > 0 {
					n.After = append(n.After, fmt.Sprintf("m%02d-%02d", level-1, j))
				}
			}
			found["mesh"] = append(found["mesh"], n)
		}
	}
	return found
}

// static returns a graph of size tasks with up to so many parents each, most of them near.
func static(size, parents int) []Node {
	source := rand.New(rand.NewPCG(1, 2))
	nodes := make([]Node, size)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("task-%04d", i)
		for range min(i, parents) {
			near := i - 1 - source.IntN(min(i, 200))
			nodes[i].After = append(nodes[i].After, nodes[near].Name)
		}
	}
	return nodes
}

// TestTreesHaveNoCrossings checks that trees, in either direction, are drawn without crossings.
func TestTreesHaveNoCrossings(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		var nodes []Node
		after := map[string][]string{}
		for i := range 63 {
			nodes = append(nodes, Node{Name: fmt.Sprintf("t%02d", i*29%63)})
			if i > 0 {
				child, parent := nodes[i].Name, nodes[(i-1)/2].Name
				if reverse {
					child, parent = parent, child
				}
				after[child] = append(after[child], parent)
			}
		}
		for i := range nodes {
			nodes[i].After = after[nodes[i].Name]
		}
		l := newLayered(components(nodes)[0].after)
		l.reduceCrossings()
		if n := l.crossings(); n != 0 {
			t.Errorf("reverse %v: %d crossings", reverse, n)
		}
	}
}

func BenchmarkLayout(b *testing.B) {
	for name, nodes := range shapes() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				NewLayout(nodes)
			}
		})
	}
}
