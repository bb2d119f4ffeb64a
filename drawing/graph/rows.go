package graph

import "math"

// Distances between the centres of items in a layer, in quarters of the height of a node.
const (
	betweenNodes = 4
	besideNode   = 3 // between a bend and a node
	betweenBends = 1
)

// rowPasses is the number of passes that move items towards their neighbours.
const rowPasses = 6

// rows returns the row of each item in quarters of a node, starting at 0. Items keep the order and
// distances of their layer and are placed near their neighbours in adjacent layers. Edges are
// straight where there is room.
func (l *layered) rows() []int {
	rows := make([]int, len(l.items))
	for _, layer := range l.layers {
		at := 0
		for k, i := range layer {
			if k > 0 {
				at += l.distance(layer[k-1], i)
			}
			rows[i] = at
		}
		for _, i := range layer {
			rows[i] -= at / 2
		}
	}
	for pass := range rowPasses {
		up, down := pass%2 == 0, pass%2 == 1
		if pass == rowPasses-1 {
			up, down = true, true
		}
		for at := range l.layers {
			k := at
			if down && !up {
				k = len(l.layers) - 1 - at
			}
			l.placeLayer(l.layers[k], rows, up, down)
		}
	}
	for _, chain := range l.chains {
		l.straighten(chain, rows)
	}
	first := math.MaxInt
	for _, row := range rows {
		first = min(first, row)
	}
	for i := range rows {
		rows[i] -= first
	}
	return rows
}

func (l *layered) distance(x, y int) int {
	switch a, b := l.items[x].bend, l.items[y].bend; {
	case a && b:
		return betweenBends
	case a || b:
		return besideNode
	}
	return betweenNodes
}

// block is a run of adjacent items in a layer that are at minimum distance.
type block struct {
	items       int
	sum, weight float64 // weighted sum of the wanted rows
}

// placeLayer moves the items of a layer towards the mean row of their neighbours, as far as distances
// allow. It is a weighted isotonic regression by pooling adjacent violators.
func (l *layered) placeLayer(layer []int, rows []int, up, down bool) {
	var blocks []block
	shift := 0
	shifts := make([]int, len(layer))
	for k, i := range layer {
		if k > 0 {
			shift += l.distance(layer[k-1], i)
		}
		shifts[k] = shift
		middle, weight := l.preferredRow(i, rows, up, down)
		b := block{1, (middle - float64(shift)) * weight, weight}
		for len(blocks) > 0 && blocks[len(blocks)-1].sum/blocks[len(blocks)-1].weight >= b.sum/b.weight {
			last := blocks[len(blocks)-1]
			b = block{last.items + b.items, last.sum + b.sum, last.weight + b.weight}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	k := 0
	for _, b := range blocks {
		at := int(math.Floor(b.sum/b.weight + 0.5))
		for range b.items {
			rows[layer[k]] = at + shifts[k]
			k++
		}
	}
}

// preferredRow returns the preferred row of an item with its weight. Bends weigh most, so that long edges
// are straight.
func (l *layered) preferredRow(i int, rows []int, up, down bool) (middle, weight float64) {
	add := func(near []int) {
		for _, n := range near {
			w := 1.0
			if l.items[n].bend && l.items[i].bend {
				w = 8
			} else if l.items[n].bend || l.items[i].bend {
				w = 2
			}
			middle, weight = middle+w*float64(rows[n]), weight+w
		}
	}
	if up {
		add(l.items[i].up)
	}
	if down {
		add(l.items[i].down)
	}
	if weight == 0 {
		return float64(rows[i]), 0.25
	}
	return middle / weight, weight
}

// straighten aligns as many consecutive bends as possible, within the room that their neighbours
// leave.
func (l *layered) straighten(chain []int, rows []int) {
	for from := 0; from < len(chain); {
		least, most := l.room(chain[from], rows)
		sum, to := rows[chain[from]], from+1
		for ; to < len(chain); to++ {
			a, b := l.room(chain[to], rows)
			if max(a, least) > min(b, most) {
				break
			}
			least, most, sum = max(a, least), min(b, most), sum+rows[chain[to]]
		}
		row := min(max(sum/(to-from), least), most)
		for _, i := range chain[from:to] {
			rows[i] = row
		}
		from = to
	}
}

// room returns the first and last row that an item can take between its neighbours.
func (l *layered) room(i int, rows []int) (least, most int) {
	layer, at := l.layers[l.items[i].rank], l.place[i]
	least, most = math.MinInt32, math.MaxInt32
	if at > 0 {
		least = rows[layer[at-1]] + l.distance(layer[at-1], i)
	}
	if at+1 < len(layer) {
		most = rows[layer[at+1]] - l.distance(i, layer[at+1])
	}
	return least, most
}
