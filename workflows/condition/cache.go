package condition

import (
	"container/list"
	"sync"
)

// These are the bounds of an Evaluator's cache. A program takes 120 to 300 times the memory of its text, so they amount to
// about 50 MiB.
const (
	maxPrograms    = 1024
	maxProgramText = 256 << 10 // bytes of all expressions
)

// cache keeps the most recently used programs. It is safe for concurrent use.
type cache struct {
	mu       sync.Mutex
	entries  int // maximum number of programs
	text     int // maximum size of their expressions, in bytes
	used     int // current size of the expressions, in bytes
	order    *list.List
	programs map[written]*list.Element
}

// written is the source of a program.
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

// get returns a cached program, or nil if there is none.
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
		return // compiled concurrently by two callers; both programs are equivalent
	}
	c.programs[w] = c.order.PushFront(cached{written: w, program: p})
	c.used += len(w.expr)
	for c.order.Len() > c.entries || c.used > c.text {
		oldest := c.order.Remove(c.order.Back()).(cached)
		delete(c.programs, oldest.written)
		c.used -= len(oldest.expr)
	}
}
