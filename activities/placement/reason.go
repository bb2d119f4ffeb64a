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
	// A refusal for a figure says what is wanted, such as "2 free GPUs", and how
	// much of it there is: what several nodes lack alike is said more shortly.
	want, got string
}

// refusals collects why nodes were refused, nodes of the same phrase together.
type refusals struct {
	nodes    int
	fitting  int  // nodes that were not refused
	possible bool // a node was refused only for what is free now, or not at all
	groups   map[phrase][]string
}

// refuse asks every node, or only the target.
func (q *Queue) refuse(s *requestClass) refusals {
	out := refusals{groups: map[phrase][]string{}}
	nodes := q.listed
	if s.targetErr != nil || s.target.Node != "" {
		nodes = q.within(s)
	}
	for _, n := range nodes {
		v := q.look(s, n)
		v.stretch = 1 // room ahead of time may be denied, and is nothing to explain
		p, could, fits := q.refusal(&v)
		out.possible = out.possible || could
		if fits {
			out.fitting++
			continue
		}
		out.nodes++
		out.groups[p] = append(out.groups[p], n.name)
	}
	return out
}

// refusal returns the first reason that speaks against a node, and whether the
// node could meet the class another time.
func (q *Queue) refusal(v *view) (p phrase, could, fits bool) {
	for _, filters := range [][]filter{q.byName, q.byKind} {
		for _, f := range filters {
			if !f.fits(v) {
				return f.why(v), false, false
			}
		}
	}
	for _, f := range q.capacities {
		if !f.fits(v) {
			return f.why(v), true, false
		}
	}
	return phrase{}, true, true
}

// reasonFor says in one line why the class waits.
func (q *Queue) reasonFor(s *requestClass) string {
	all := q.refuse(s)
	missing, isMissing := q.missingFor(s)
	switch {
	case s.targetErr != nil:
		return bounded("no node could ever fit: " + s.targetErr.Error())
	case len(q.listed) == 0:
		return "no node has registered yet"
	case all.fitting > 0:
		return fmt.Sprintf("%d of %d nodes fit: it is to be placed at once, or what is more urgent comes first", all.fitting, all.nodes+all.fitting)
	case all.nodes == 0 && s.target.Node != "":
		return bounded("no node could ever fit: there is no node " + s.target.Node)
	case !all.possible && isMissing:
		return q.missingReason(missing)
	case !all.possible:
		return bounded("no node could ever fit: " + all.String())
	}
	if want, ok := all.common(); ok && all.nodes > 1 {
		return bounded(fmt.Sprintf("0 of %d nodes have %s: %s", all.nodes, want, all.figures()))
	}
	return bounded(fmt.Sprintf("0 of %d nodes fit: %s", all.nodes, all))
}

// common returns what all the nodes lack, as far as that is one thing.
func (r refusals) common() (want string, ok bool) {
	for p := range r.groups {
		if p.want == "" || ok && p.want != want {
			return "", false
		}
		want, ok = p.want, true
	}
	return want, ok
}

// figures returns how much nodes have of what all of them lack, by name.
func (r refusals) figures() string {
	var parts []string
	for p, names := range r.groups {
		for _, name := range names {
			parts = append(parts, name+" "+p.got)
		}
	}
	slices.Sort(parts)
	if more := len(parts) - namedNodes; more > 0 {
		parts = append(parts[:namedNodes], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
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
