package placement

import (
	"fmt"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
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
		return rs.tooFew(s, all, most)
	}
	if all.room == 0 {
		return fmt.Sprintf("room for 0 of %s: %s", count(size, "member"), all.summary())
	}
	return fmt.Sprintf("room for %d of %s, then %s", all.room, count(size, "member"), all.summary())
}

// tooFew returns why the nodes could never hold more than most members of a gang at once, and what helps.
func (rs *reasons) tooFew(s *spec, all refusals, most int) string {
	match := "1 node matches"
	if n := len(all.suitable); n > 1 {
		match = fmt.Sprintf("%d nodes match", n)
	}
	limit, remedy := "", "add nodes"
	if perNode := s.gang.GetPerNode(); perNode > 0 {
		free := *s
		free.gang = &historyv1.GangRequest{Task: s.gang.GetTask(), Size: s.gang.GetSize()}
		if rs.eval.mostMembers(&free, slices.Values(all.suitable)) > most {
			limit, remedy = fmt.Sprintf("perNode %d, ", perNode), "add nodes or raise perNode"
		}
	}
	if len(all.away) > 0 {
		remedy = "wait until " + oneOf(all.away) + " is back, or " + remedy
	}
	return fmt.Sprintf("the nodes have room for %d of %s at most: %s%s; %s", most, count(s.gangSize(), "member"), limit, match, remedy)
}
