package placement

import (
	"fmt"
	"slices"
)

// isTooLarge reports whether a request is for a member of a gang that the present nodes could never hold as a whole.
func (rs *reasons) isTooLarge(s *spec) bool {
	return s.gang != nil && rs.eval.mostMembers(s, slices.Values(rs.refuse(s, nil).suitable)) < s.gangSize()
}

// membersAtMost returns how many members of a gang a node could hold.
func (rs *reasons) membersAtMost(s *spec, n *node) string {
	most := rs.eval.mostMembers(s, slices.Values([]*node{n}))
	return fmt.Sprintf("has room for %d of %s at most", most, count(s.gangSize(), "member"))
}

// gangReason explains why a gang waits, given why the nodes take no more of its members than they do.
func (rs *reasons) gangReason(s *spec, all refusals) string {
	size := s.gangSize()
	if most := rs.eval.mostMembers(s, slices.Values(all.suitable)); most < size {
		return all.tooFew(s, most)
	}
	if all.room == 0 {
		return fmt.Sprintf("room for 0 of %s: %s", count(size, "member"), all.summary())
	}
	return fmt.Sprintf("room for %d of %s, then %s", all.room, count(size, "member"), all.summary())
}

// tooFew returns why the nodes could never hold more than most members of a gang at once, and what helps.
func (r refusals) tooFew(s *spec, most int) string {
	match := "1 node matches"
	if n := len(r.suitable); n > 1 {
		match = fmt.Sprintf("%d nodes match", n)
	}
	limit, remedy := "", "add nodes"
	if perNode := s.gang.GetPerNode(); perNode > 0 {
		limit, remedy = fmt.Sprintf("perNode %d, ", perNode), "add nodes or raise perNode"
	}
	if len(r.away) > 0 {
		remedy = "wait until " + oneOf(r.away) + " is back, or " + remedy
	}
	return fmt.Sprintf("the nodes have room for %d of %s at most: %s%s; %s", most, count(s.gangSize(), "member"), limit, match, remedy)
}
