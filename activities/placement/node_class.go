package placement

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// verdict is whether a node class could ever run a request class.
type verdict int8

const (
	unknown verdict = iota
	suits
	never
)

// nodeClasses numbers the node classes. All nodes of a class look the same to every filter on
// properties that seldom change, so that a request class evaluates each of these filters once per
// node class and not once per node.
type nodeClasses struct {
	numbers map[string]int // by traits
	scratch []byte
}

func newNodeClasses() nodeClasses { return nodeClasses{numbers: map[string]int{}} }

// numberOf returns the number of the node's class.
func (c *nodeClasses) numberOf(n *node) int {
	c.scratch = traits(c.scratch[:0], n.snap, n.state == v1.NodeOffline)
	number, ok := c.numbers[string(c.scratch)]
	if !ok {
		number = len(c.numbers)
		c.numbers[string(c.scratch)] = number
	}
	return number
}

func (c *nodeClasses) len() int { return len(c.numbers) }

// clear forgets all classes, so that their numbers start again at 0.
func (c *nodeClasses) clear() { clear(c.numbers) }

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
		number(math.Float64bits(g.GetMemoryMb()))
		text(g.GetName())
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
	list(s.GetTerms().GetKeptFor())
	flag(offline)
	if s.GetSupport() == nil {
		return b
	}
	// Marshalling fails only for invalid UTF-8, which a payload cannot contain.
	b, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, s.GetSupport())
	return append(b, 1)
}
