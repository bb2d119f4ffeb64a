package mask

import "slices"

// node is a state of the automaton of Aho and Corasick: the longest beginning of a pattern that the text ends with.
type node struct {
	// child is the first node that is one byte longer, and sibling the next node with the same parent. 0 ends a list.
	child, sibling int32
	// fail is the node of the longest shorter beginning that the text ends with, too.
	fail int32
	// depth is how many bytes lead here.
	depth int32
	// match is the length of the longest pattern that the text ends with; 0: none.
	match int32
	// char is the last byte.
	char byte
}

// automaton finds patterns of at least two bytes. It does not change once it is made.
type automaton struct {
	nodes []node // the first one is the root
	root  [256]int32
	// pairs has a bit for each two bytes that a pattern begins with: other text is skipped.
	pairs [1 << 16 / 64]uint64
	// window is the length of the shortest pattern, or maxWindow, and shifts has, by the last two bytes of a window,
	// how far the next one may be in which a pattern begins: the search of Wu and Manber.
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

// down returns the node that is one byte longer, or 0 at the end of every pattern.
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

// step returns the state after another byte.
func (a *automaton) step(at int32, c byte) int32 {
	for {
		if next := a.down(at, c); next != 0 || at == 0 {
			return next
		}
		at = a.nodes[at].fail
	}
}

// link sets fail and match of all nodes, the shallow ones first.
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

// begins reports whether a pattern begins with two bytes.
func (a *automaton) begins(c, d byte) bool {
	pair := uint16(c)<<8 | uint16(d)
	return a.pairs[pair/64]>>(pair%64)&1 != 0
}

// skip returns how much at the start of p no pattern begins in. The last byte counts if one may begin with it.
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
	// The rest may be the beginning of a pattern that the next part completes.
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

// distinct returns texts without those that occur twice, in a fixed order.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
