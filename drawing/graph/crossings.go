package graph

import (
	"cmp"
	"slices"
)

// Bounds of the search for an order with few crossings, in sweeps. Graphs with many edges get fewer
// sweeps.
const (
	maxSweeps  = 12
	minSweeps  = 2
	sweepEdges = 300_000
)

// reduceCrossings reorders the layers to reduce crossings. Sweeps alternate direction and move each item
// to the mean position of its neighbours in the previous layer; ties keep their order. The best
// order found is kept.
func (l *layered) reduceCrossings() {
	edges := 0
	for _, it := range l.items {
		edges += len(it.down)
	}
	best, least := l.copyLayers(), l.crossings()
	worse := 0
	for sweep := range min(max(sweepEdges/max(edges, 1), minSweeps), maxSweeps) {
		if least == 0 || worse == 3 {
			break
		}
		if sweep%2 == 0 {
			for k := 1; k < len(l.layers); k++ {
				l.sortLayer(k, func(it item) []int { return it.up })
			}
		} else {
			for k := len(l.layers) - 2; k >= 0; k-- {
				l.sortLayer(k, func(it item) []int { return it.down })
			}
		}
		if n := l.crossings(); n < least {
			best, least, worse = l.copyLayers(), n, 0
		} else {
			worse++
		}
	}
	l.layers = best
	l.updatePlaces()
}

func (l *layered) copyLayers() [][]int {
	layers := make([][]int, len(l.layers))
	for k := range layers {
		layers[k] = slices.Clone(l.layers[k])
	}
	return layers
}

// sortLayer sorts a layer by the mean positions of neighbours. Items without neighbours keep their
// positions.
func (l *layered) sortLayer(k int, neighbours func(item) []int) {
	type moved struct {
		item   int
		middle float64
	}
	layer := l.layers[k]
	var movable []moved
	var places []int
	for at, i := range layer {
		near := neighbours(l.items[i])
		if len(near) == 0 {
			continue
		}
		sum := 0
		for _, n := range near {
			sum += l.place[n]
		}
		movable, places = append(movable, moved{i, float64(sum) / float64(len(near))}), append(places, at)
	}
	slices.SortStableFunc(movable, func(x, y moved) int { return cmp.Compare(x.middle, y.middle) })
	for at, m := range movable {
		layer[places[at]] = m.item
	}
	for at, i := range layer {
		l.place[i] = at
	}
}

// crossings counts the pairs of edges that cross, layer by layer, with a Fenwick tree.
func (l *layered) crossings() int {
	total := 0
	var ends []int
	for k := 0; k+1 < len(l.layers); k++ {
		size := len(l.layers[k+1])
		sums, seen := make([]int, size+1), 0
		for _, i := range l.layers[k] {
			ends = ends[:0]
			for _, child := range l.items[i].down {
				ends = append(ends, l.place[child])
			}
			for _, end := range ends { // edges that share an item do not cross
				before := 0
				for at := end + 1; at > 0; at -= at & -at {
					before += sums[at]
				}
				total += seen - before
			}
			for _, end := range ends {
				for at := end + 1; at <= size; at += at & -at {
					sums[at]++
				}
			}
			seen += len(ends)
		}
	}
	return total
}
