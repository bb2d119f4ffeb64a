package mask

import "slices"

// node is a state of the Aho-Corasick automaton: the longest prefix of a pattern that the text ends with.
type node struct {
	// child is the first node that is one byte longer, and sibling is the next node with the same parent. 0 ends a
	// list.
	child, sibling int32
	// fail is the node of the next shorter prefix that the text also ends with.
	fail int32
	// depth is the length of the prefix in bytes.
	depth int32
	// match is the length of the longest pattern that the text ends with, or 0 if there is none.
	match int32
	// char is the last byte of the prefix.
	char byte
}

// automaton finds patterns of at least two bytes. It is immutable after construction.
type automaton struct {
	nodes []node // the first node is the root
	root  [256]int32
	// pairs has a bit for each pair of bytes that begins a pattern. The search skips other text.
	pairs [1 << 16 / 64]uint64
	// window is the length of the shortest pattern, at most maxWindow. shifts holds, by the last two bytes of a
	// window, the distance to the next window in which a pattern may begin. This is the Wu-Manber search.
	window int
	shifts [1 << 16]uint8
}

const maxWindow = 64

func newAutomaton(patterns []string) *automaton {
	a := &automaton{nodes: make([]node, 1)}
	for _, p := range patterns {
		a.add(p)
	}
	a.link()
	a.measure(patterns)
	return a
}

// measure sets window and shifts.
func (a *automaton) measure(patterns []string) {
	a.window = maxWindow
	for _, p := range patterns {
		a.window = min(a.window, len(p))
	}
	for i := range a.shifts {
		a.shifts[i] = uint8(a.window - 1)
	}
	for _, p := range patterns {
		for i := range a.window - 1 {
			pair := uint16(p[i])<<8 | uint16(p[i+1])
			a.shifts[pair] = min(a.shifts[pair], uint8(a.window-2-i))
		}
	}
}

func (a *automaton) add(pattern string) {
	at := int32(0)
	for i := range len(pattern) {
		next := a.down(at, pattern[i])
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{sibling: a.nodes[at].child, depth: a.nodes[at].depth + 1, char: pattern[i]})
			a.nodes[at].child = next
			if at == 0 {
				a.root[pattern[i]] = next
			}
		}
		at = next
	}
	a.nodes[at].match = int32(len(pattern))
	pair := uint16(pattern[0])<<8 | uint16(pattern[1])
	a.pairs[pair/64] |= 1 << (pair % 64)
}

// down returns the node that is one byte longer, or 0 if no pattern continues with c.
func (a *automaton) down(at int32, c byte) int32 {
	if at == 0 {
		return a.root[c]
	}
	next := a.nodes[at].child
	for next != 0 && a.nodes[next].char != c {
		next = a.nodes[next].sibling
	}
	return next
}

// step returns the state after one more byte.
func (a *automaton) step(at int32, c byte) int32 {
	for {
		if next := a.down(at, c); next != 0 || at == 0 {
			return next
		}
		at = a.nodes[at].fail
	}
}

// link sets fail and match of all nodes in breadth-first order.
func (a *automaton) link() {
	order := make([]int32, 1, len(a.nodes))
	for i := 0; i < len(order); i++ {
		at := order[i]
		for next := a.nodes[at].child; next != 0; next = a.nodes[next].sibling {
			order = append(order, next)
			n := &a.nodes[next]
			if at != 0 {
				n.fail = a.step(a.nodes[at].fail, n.char)
			}
			n.match = max(n.match, a.nodes[n.fail].match)
		}
	}
}

// begins reports whether a pattern begins with these two bytes.
func (a *automaton) begins(c, d byte) bool {
	pair := uint16(c)<<8 | uint16(d)
	return a.pairs[pair/64]>>(pair%64)&1 != 0
}

// skip returns the length of the part at the start of p in which no pattern begins. The last byte of p is not part of
// it if a pattern may begin with that byte.
func (a *automaton) skip(p []byte) int {
	at := 0
	for end := a.window - 1; at+end < len(p); {
		shift := int(a.shifts[uint16(p[at+end-1])<<8|uint16(p[at+end])])
		if shift == 0 {
			if a.begins(p[at], p[at+1]) {
				return at
			}
			shift = 1
		}
		at += shift
	}
	// The rest may be the beginning of a pattern that the next chunk completes.
	for ; at < len(p)-1; at++ {
		if a.begins(p[at], p[at+1]) {
			return at
		}
	}
	if last := len(p) - 1; a.root[p[last]] != 0 {
		return last
	}
	return len(p)
}

// distinct sorts texts and removes duplicates.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
