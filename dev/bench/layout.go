package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"switchyard/drawing/graph"
	"switchyard/drawing/svg"
)

// layoutShape is the -shape that measures the layout of large graphs.
const layoutShape = "layout"

// benchLayout measures the layout and the drawing of synthetic graphs.
func benchLayout(rounds int) {
	fmt.Printf("layout of graphs whose tasks have two parents each, medians of %d rounds\n\n", rounds)
	fmt.Println("| tasks | edges | layout | drawing | size |")
	fmt.Println("|--:|--:|--:|--:|--:|")
	for _, size := range []int{500, 5000, 20_000} {
		nodes, edges := madeUpGraph(size)
		var layouts, drawings []time.Duration
		bytes := 0
		for range rounds {
			began := time.Now()
			l := graph.NewLayout(nodes)
			arranged := time.Now()
			bytes = len(svg.Graph(l, nodes, svg.GraphOptions{}))
			layouts, drawings = append(layouts, arranged.Sub(began)), append(drawings, time.Since(arranged))
		}
		slices.Sort(layouts)
		slices.Sort(drawings)
		fmt.Printf("| %d | %d | %s | %s | %d KiB |\n", size, edges, layouts[rounds/2].Round(time.Millisecond), drawings[rounds/2].Round(time.Millisecond), bytes>>10)
	}
}

// madeUpGraph returns tasks that each wait for two of the preceding 200 tasks.
func madeUpGraph(size int) (nodes []graph.Node, edges int) {
	source := rand.New(rand.NewPCG(1, 2))
	nodes = make([]graph.Node, size)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("task-%05d", i)
		for range min(i, 2) {
			nodes[i].After = append(nodes[i].After, nodes[i-1-source.IntN(min(i, 200))].Name)
			edges++
		}
	}
	return nodes, edges
}
