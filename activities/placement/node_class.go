package placement

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// verdict is whether a node class could ever run a request class.
type verdict int8

const (
	unknown verdict = iota
	suits
	never
)

// nodeClassOf returns the number of the node's class. All nodes of a class look the same to every
// filter on properties that seldom change, so that a request class evaluates each of these filters
// once per node class and not once per node.
func (q *Queue) nodeClassOf(n *node) int {
	q.scratch = traits(q.scratch[:0], n.snap, n.state == v1.NodeOffline)
	kind, ok := q.nodeClasses[string(q.scratch)]
	if !ok {
		kind = len(q.nodeClasses)
		q.nodeClasses[string(q.scratch)] = kind
	}
	return kind
}

// traits appends an encoding of the node that is equal exactly for nodes of the same node class.
func traits(b []byte, s *v1.NodeSnapshot, offline bool) []byte {
	number := func(x uint64) { b = binary.AppendUvarint(b, x) }
	text := func(s string) {
		number(uint64(len(s)))
		b = append(b, s...)
	}
	list := func(l []string) {
		number(uint64(len(l)))
		for _, s := range l {
			text(s)
		}
	}
	flag := func(f bool) {
		if b = append(b, 0); f {
			b[len(b)-1] = 1
		}
	}
	list(s.GetLabels())
	list(s.GetExecutors())
	number(uint64(len(s.GetCapabilities())))
	for _, key := range slices.Sorted(maps.Keys(s.GetCapabilities())) {
		text(key)
		text(s.GetCapabilities()[key])
	}
	number(uint64(len(s.GetWithheld())))
	for _, taskType := range slices.Sorted(maps.Keys(s.GetWithheld())) {
		text(taskType)
		text(s.GetWithheld()[taskType])
	}
	number(uint64(s.GetCpu().GetCores()))
	number(math.Float64bits(s.GetMemory().GetTotalMb()))
	number(math.Float64bits(s.GetDisk().GetTotalGb()))
	number(uint64(len(s.GetGpus())))
	for _, g := range s.GetGpus() {
		number(uint64(g.GetIndex()))
	}
	number(uint64(len(s.GetNuma())))
	for _, p := range s.GetNuma() {
		number(uint64(p.GetIndex()))
		number(uint64(len(p.GetCpus())))
		number(math.Float64bits(p.GetMemoryTotalMb()))
	}
	allowed := s.GetContainers()
	text(allowed.GetCommand())
	flag(allowed.GetPrivileged())
	flag(allowed.GetHostNetwork())
	list(allowed.GetCapabilities())
	number(uint64(len(allowed.GetMounts())))
	for _, m := range allowed.GetMounts() {
		text(m.GetPath())
		flag(m.GetReadOnly())
	}
	flag(s.GetGaming())
	flag(offline)
	return b
}

// couldEverFit reports whether the node could run the class if it were idle.
func (q *Queue) couldEverFit(s *requestClass, n *node) bool {
	v := &view{requestClass: s, n: n, now: q.now, stretch: 1}
	if s.namesSome && !fitsAll(q.byName, v) {
		return false
	}
	if missing := n.class + 1 - len(s.nodeClasses); missing > 0 {
		s.nodeClasses = append(s.nodeClasses, make([]verdict, missing)...)
	}
	if s.nodeClasses[n.class] == unknown {
		s.nodeClasses[n.class] = never
		if fitsAll(q.byKind, v) {
			s.nodeClasses[n.class] = suits
		}
	}
	return s.nodeClasses[n.class] == suits
}

func fitsAll(filters []filter, v *view) bool {
	for i := range filters {
		if !filters[i].fits(v) {
			return false
		}
	}
	return true
}
