package condition

import "sync"

// These are the bounds of an Evaluator's cache. A program takes 120 to 300 times the memory of its text, so they amount to
// about 50 MiB.
const (
	maxPrograms    = 1024
	maxProgramText = 256 << 10 // bytes of all expressions
)

// cache keeps what was made from texts. When it is full, it begins again. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	mu      sync.Mutex
	entries int // maximum number of values
	text    int // maximum size of the texts, in bytes
	used    int // current size of the texts
	made    map[K]V
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made, ok := c.made[key]
	return made, ok
}

// put keeps what was made from a text of some bytes.
func (c *cache[K, V]) put(key K, bytes int, made V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.made[key]; ok {
		return // made concurrently by two callers; both values are equivalent
	}
	if c.made == nil || len(c.made) >= c.entries || c.used+bytes > c.text {
		c.made, c.used = map[K]V{}, 0
	}
	c.made[key] = made
	c.used += bytes
}

// written is the source of a program.
type written struct {
	kind Kind
	expr string
}
