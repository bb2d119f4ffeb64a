package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// namedNodes is the maximum number of nodes that a reason names.
	namedNodes = 5
	// longestReason is the maximum length of a reason in bytes. A reason that names five nodes with
	// names of usual length fits, and thousands of reasons fit into one response.
	longestReason = 300
)

// refusals groups the refused nodes by phrase.
type refusals struct {
	total    int // nodes that were evaluated
	nodes    int
	fitting  int  // nodes with room for one request
	room     int  // requests that have room: 1, or the members of a gang that do, even if not all do
	possible bool // some node fits, or was refused only for what is free now
	groups   map[phrase][]string
	// away holds the nodes that could run the request if they were neither offline nor restarting. present is set if another node
	// could ever run it.
	away     []string
	present  bool
	suitable []*node // that could ever run a member of the gang; nil if the request is not for a gang
}

// reasons explains where a request fits and why it waits. It looks at every node.
type reasons struct {
	fleet        *fleet
	eval         *evaluator
	reservations *reservations
	weights      *Weights
}

// reservedFor returns that the node is kept for a more urgent request than r. ok is false if it is not, or if r is nil.
func (rs *reasons) reservedFor(r *request, n *node) (p phrase, ok bool) {
	if r == nil || r.line == nil || rs.reservations.mayStart(r.line, n, false) {
		return p, false
	}
	return phrase{verb: is, object: n.machine.reservation.text(r)}, true
}

// reasonFor returns one line that explains why a request waits. r is a waiting request, or nil if none waits.
func (rs *reasons) reasonFor(s *spec, r *request) string {
	all := rs.refuse(s, r)
	missing, isMissing := rs.missingFor(s)
	switch {
	case s.targetErr != nil:
		return bounded("no node could ever fit: " + s.targetErr.Error())
	case len(rs.fleet.listed) == 0:
		return "no node has registered yet"
	case all.room == s.gangSize():
		return fmt.Sprintf("%d of %d nodes fit: the task is placed next, after more urgent ones", all.fitting, all.total)
	case all.nodes == 0 && s.target.Node != "":
		return bounded("no node could ever fit: there is no node " + s.target.Node)
	case !all.possible && isMissing:
		return rs.missingReason(missing)
	case !all.present && len(all.away) > 0:
		return bounded("no node fits until " + oneOf(all.away) + " is back: " + all.String())
	case !all.possible:
		return bounded("no node could ever fit: " + all.String())
	case s.gang != nil:
		return bounded(rs.gangReason(s, all))
	}
	return bounded(all.summary())
}

// summary returns why all the nodes were refused.
func (r refusals) summary() string {
	if want, ok := r.common(); ok && r.nodes > 1 {
		return fmt.Sprintf("0 of %d nodes have %s: %s", r.nodes, want, r.figures())
	}
	return fmt.Sprintf("0 of %d nodes fit: %s", r.nodes, r)
}

// refuse evaluates the request on every node, or only on the nodes that the target names. The members of a gang are evaluated
// together: a node is refused for what keeps it from taking one more of them, unless all have room.
func (rs *reasons) refuse(s *spec, r *request) refusals {
	out := refusals{groups: map[phrase][]string{}}
	members := &trial{spec: s, eval: rs.eval}
	defer members.undo()
	nodes := rs.fleet.listed
	if s.targetErr != nil || s.target.Node != "" {
		nodes = rs.fleet.allowedBy(s)
	}
	out.total = len(nodes)
	for _, n := range nodes {
		v := rs.eval.viewOf(s, n)
		v.stretch = 1 // explain only immediate room; room for prefetching does not matter to people
		p, could, fits := rs.eval.refusal(&v)
		out.possible = out.possible || could
		if fits {
			reserved, isReserved := rs.reservedFor(r, n)
			p, fits = reserved, !isReserved
		}
		if could && s.gang != nil {
			out.suitable = append(out.suitable, n)
		}
		if fits {
			out.fitting++
			if out.room = s.gangSize(); s.gang != nil {
				out.room = members.fill(n, rs.eval.byRoom)
			}
			if out.room == s.gangSize() {
				continue
			}
			p, _, _ = rs.eval.refusal(&v)
		}
		out.nodes++
		switch {
		case n.state == v1.NodeOffline && rs.eval.couldIfOnline(&v), n.state == v1.NodeRestarting && could:
			out.away = append(out.away, n.name)
		case could:
			out.present = true
		}
		out.groups[p] = append(out.groups[p], n.name)
	}
	return out
}

// oneOf returns the first of the names of nodes, and how many others there are.
func oneOf(names []string) string {
	switch more := len(names) - 1; more {
	case 0:
		return names[0]
	case 1:
		return names[0] + " or " + names[1]
	default:
		return fmt.Sprintf("%s or one of %d others", names[0], more)
	}
}

// common returns what all the nodes lack, if it is the same for all of them.
func (r refusals) common() (want string, ok bool) {
	for p := range r.groups {
		if p.want == "" || ok && p.want != want {
			return "", false
		}
		want, ok = p.want, true
	}
	return want, ok
}

// figures lists how much each node has of what all of them lack, ordered by name.
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

// String lists the refused nodes for each phrase, the most common phrase first.
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
		// Name one node for every phrase before any phrase names all its nodes.
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

// bounded truncates a reason that user-given names have made too long.
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
