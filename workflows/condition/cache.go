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
	programs map[string]*list.Element
}

type cached struct {
	expr    string
	program *program
}

func newCache(entries, text int) *cache {
	return &cache{entries: entries, text: text, order: list.New(), programs: make(map[string]*list.Element)}
}

// get returns nil when there is no program.
func (c *cache) get(expr string) *program {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.programs[expr]
	if !ok {
		return nil
	}
	c.order.MoveToFront(element)
	return element.Value.(cached).program
}

func (c *cache) put(expr string, p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.programs[expr]; ok {
		return // compiled twice at the same time; both are the same
	}
	c.programs[expr] = c.order.PushFront(cached{expr: expr, program: p})
	c.used += len(expr)
	for c.order.Len() > c.entries || c.used > c.text {
		oldest := c.order.Remove(c.order.Back()).(cached)
		delete(c.programs, oldest.expr)
		c.used -= len(oldest.expr)
	}
}
