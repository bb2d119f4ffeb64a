package condition

import (
	"container/list"
	"sync"
)

// Bounds of an Evaluator's cache. A program takes 120 to 300 times the memory
// of its text, so that these come to some 50 MiB.
const (
	maxPrograms    = 1024
	maxProgramText = 256 << 10 // bytes of all expressions
)

// cache keeps the programs that were used last. Safe for concurrent use.
type cache struct {
	mu       sync.Mutex
	entries  int // bound of their number
	text     int // bound of their expressions' bytes
	used     int // bytes of the expressions
	order    *list.List
	programs map[written]*list.Element
}

// written is what a program was made of.
type written struct {
	kind Kind
	expr string
}

type cached struct {
	written
	program *program
}

func newCache(entries, text int) *cache {
	return &cache{entries: entries, text: text, order: list.New(), programs: make(map[written]*list.Element)}
}

// get returns nil when there is no program.
func (c *cache) get(w written) *program {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.programs[w]
	if !ok {
		return nil
	}
	c.order.MoveToFront(element)
	return element.Value.(cached).program
}

func (c *cache) put(w written, p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.programs[w]; ok {
		return // compiled twice at the same time; both are the same
	}
	c.programs[w] = c.order.PushFront(cached{written: w, program: p})
	c.used += len(w.expr)
	for c.order.Len() > c.entries || c.used > c.text {
		oldest := c.order.Remove(c.order.Back()).(cached)
		delete(c.programs, oldest.written)
		c.used -= len(oldest.expr)
	}
}
