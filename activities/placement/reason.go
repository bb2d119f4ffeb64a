package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// namedNodes is the most nodes that a reason names.
	namedNodes = 5
	// longestReason bounds a reason in bytes: one that names five nodes of
	// usual names fits, and thousands of them fit into one answer.
	longestReason = 300
)

// verb has its forms for one node and for several.
type verb struct{ one, many string }

var (
	has     = verb{"has", "have"}
	is      = verb{"is", "are"}
	does    = verb{"does", "do"}
	lacks   = verb{"lacks", "lack"}
	reports = verb{"reports", "report"}
)

// phrase says why a node was refused; its subject is the node.
type phrase struct {
	verb   verb
	object string
}

// refusals collects why nodes were refused, nodes of the same phrase together.
type refusals struct {
	nodes    int
	possible bool // a node was refused only for what is free now
	groups   map[phrase][]string
}

// refuse asks every node that the shape may look at. The shape fits none of them.
func (q *Queue) refuse(s *shape) refusals {
	out := refusals{groups: map[phrase][]string{}}
	for _, n := range q.within(s) {
		v := q.look(s, n)
		v.stretch = 1 // room ahead of time may be denied, and is nothing to explain
		for _, f := range q.filters {
			if f.fits(v) {
				continue
			}
			p := f.why(v)
			out.nodes++
			out.possible = out.possible || !f.static
			out.groups[p] = append(out.groups[p], n.name)
			break
		}
	}
	return out
}

// reasonFor says in one line why the shape waits, and whether no present node
// could ever meet it.
func (q *Queue) reasonFor(s *shape) (text string, impossible bool) {
	all := q.refuse(s)
	switch {
	case s.targetErr != nil:
		return bounded("no node could ever fit: " + s.targetErr.Error()), true
	case len(q.present) == 0:
		return "no node has registered yet", true
	case all.nodes == 0 && s.target.Node != "":
		return bounded("no node could ever fit: there is no node " + s.target.Node), true
	case !all.possible:
		return bounded("no node could ever fit: " + all.String()), true
	}
	return bounded(fmt.Sprintf("0 of %d nodes fit: %s", all.nodes, all)), false
}

// String names the nodes of each phrase, the most common phrase first.
func (r refusals) String() string {
	type group struct {
		phrase phrase
		names  []string
	}
	groups := make([]group, 0, len(r.groups))
	for p, names := range r.groups {
		groups = append(groups, group{p, names})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(b.names), len(a.names)), cmp.Compare(a.names[0], b.names[0]))
	})
	var parts []string
	left, said := namedNodes, 0
	for i, g := range groups {
		if left == 0 {
			break
		}
		// Every phrase gets its word before one of them names all its nodes.
		named := min(len(g.names), max(1, left-(len(groups)-1-i)))
		left -= named
		said += len(g.names)
		subject := strings.Join(g.names[:named], ", ")
		if more := len(g.names) - named; more > 0 {
			subject += fmt.Sprintf(" and %d more", more)
		}
		word := g.phrase.verb.one
		if len(g.names) > 1 {
			word = g.phrase.verb.many
		}
		parts = append(parts, subject+" "+word+" "+g.phrase.object)
	}
	if rest := r.nodes - said; rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(parts, "; ")
}

// bounded cuts a reason that user-given names have made too long.
func bounded(text string) string {
	const ellipsis = "..."
	if len(text) <= longestReason {
		return text
	}
	cut := longestReason - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + ellipsis
}
