package placement

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// line is the waiting requests of one task of a run, all instances of a fan-out together, which ask
// for the same things with the same priority. The oldest is next.
type line struct {
	key       lineKey
	class     *requestClass
	account   *account // of the run
	priority  int32
	kind      kind
	requests  requestHeap
	blocked   string    // which quota keeps the line waiting, or ""
	toldAt    time.Time // when blocked was last reported
	toldTerms int       // value of accounts.revision at that time
	index     int       // in requestClass.lines
	turn      *turn
	revision  int    // value of accounts.revision when turn was found
	pass      uint64 // number of the order that it belongs to, or 0
}

// lineKey identifies a line within its request class.
type lineKey struct {
	account  *account
	task     string
	priority int32
}

func (l *line) first() *request { return l.requests[0] }

// lineHeap is a heap of lines in the order of their first requests.
type lineHeap []*line

func (h lineHeap) Len() int           { return len(h) }
func (h lineHeap) Less(i, j int) bool { return h[i].first().before(h[j].first()) }
func (h lineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *lineHeap) Push(x any) {
	l := x.(*line)
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *lineHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}

// agedLine is a line with the age of its first request, for quick comparisons.
type agedLine struct {
	age
	*line
}

// turn is the part of an account in the order of one priority: the lines of a run, or the turns of
// the accounts below it.
type turn struct {
	account *account
	up      *turn // of the account above, or nil
	level   float64
	pass    uint64 // number of the order that it belongs to, or 0
	below   turnHeap
	lines   []agedLine // the one with the oldest request first, from next on
	next    int        // index in lines; those before it have been removed
	age     age        // of the request that is next
}

// noteFirst updates the age of the turn after its next line or turn below has changed.
func (t *turn) noteFirst() {
	if len(t.below) > 0 {
		t.age = t.below[0].age
	} else {
		t.age = t.lines[t.next].age
	}
}

func (t *turn) isEmpty() bool { return len(t.below) == 0 && t.next == len(t.lines) }

// turnHeap is a heap of turns: the lowest level first, and among equals the oldest request.
type turnHeap []*turn

func (h turnHeap) Len() int { return len(h) }
func (h turnHeap) Less(i, j int) bool {
	if h[i].level != h[j].level {
		return h[i].level < h[j].level
	}
	return h[i].age.before(h[j].age)
}
func (h turnHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *turnHeap) Push(x any) { *h = append(*h, x.(*turn)) }

// Pop implements heap.Interface.
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

// order is the order in which the lines of a pass are placed: by priority, then by the levels of
// their accounts, then by age. Only the levels of accounts whose requests it places may change
// while it exists, and only upwards.
type order struct {
	accounts *accounts
	now      time.Time
	pass     uint64
	levels   []priorityTurns // the highest priority first
	classes  int             // request classes that may still be placed
}

// priorityTurns is the turns of one priority.
type priorityTurns struct {
	priority int32
	turns    turnHeap
}

// start empties the order.
func (o *order) start(now time.Time) {
	o.now, o.classes = now, 0
	o.pass++
	for i := range o.levels {
		clear(o.levels[i].turns)
		o.levels[i].turns = o.levels[i].turns[:0]
	}
}

// open adds the lines of a class that may be placed.
func (o *order) open(s *requestClass) {
	if !s.inOrder {
		s.inOrder = true
		o.classes++
	}
	for _, l := range s.lines {
		o.add(l)
	}
}

// close records that a class cannot be placed any more. Its lines remain until they are next.
func (o *order) close(s *requestClass) {
	if s.inOrder {
		s.inOrder = false
		o.classes--
	}
}

// add adds a line, unless it is already part of the order. After the last one, the caller calls sort.
func (o *order) add(l *line) {
	if l.pass == o.pass {
		return
	}
	if l.turn == nil || l.revision != o.accounts.revision {
		l.turn, l.revision = l.account.turnOf(l.priority), o.accounts.revision
	}
	o.enter(l.turn, l.priority)
	l.pass = o.pass
	l.turn.lines = append(l.turn.lines, agedLine{l.first().age, l})
}

// enter adds a turn, and those above it, unless they are already part of the order.
func (o *order) enter(t *turn, priority int32) {
	if t.pass == o.pass {
		return
	}
	t.pass, t.lines, t.next, t.below = o.pass, t.lines[:0], 0, t.below[:0]
	t.level = o.accounts.level(t.account, o.now)
	if t.up != nil {
		o.enter(t.up, priority)
	}
	siblings := o.siblings(t, priority)
	*siblings = append(*siblings, t)
}

// turnsOf returns the turns of a priority.
func (o *order) turnsOf(priority int32) *turnHeap {
	i, ok := slices.BinarySearchFunc(o.levels, priority, func(l priorityTurns, p int32) int { return cmp.Compare(p, l.priority) })
	if !ok {
		o.levels = slices.Insert(o.levels, i, priorityTurns{priority: priority})
	}
	return &o.levels[i].turns
}

// sort restores the order after lines were added.
func (o *order) sort() {
	for i := range o.levels {
		o.levels[i].turns.sort()
	}
}

func (h *turnHeap) sort() {
	for _, t := range *h {
		t.below.sort()
		slices.SortFunc(t.lines[t.next:], func(a, b agedLine) int { return a.compare(b.age) })
		t.noteFirst()
	}
	heap.Init(h)
}

// next returns the next line, or nil if there is none.
func (o *order) next() *line {
	for i := range o.levels {
		if turns := o.levels[i].turns; len(turns) > 0 {
			t := turns[0]
			for len(t.below) > 0 {
				t = t.below[0]
			}
			return t.lines[t.next].line
		}
	}
	return nil
}

// remove removes the next line, l.
func (o *order) remove(l *line) {
	l.pass = 0
	t := l.turn
	t.lines[t.next] = agedLine{}
	t.next++
	o.settle(l)
}

// advance restores the order after the first request of the next line, l, was placed.
func (o *order) advance(l *line) {
	for t := l.turn; t != nil; t = t.up {
		t.level = o.accounts.level(t.account, o.now)
	}
	if len(l.requests) == 0 {
		o.remove(l)
		return
	}
	l.turn.moveFirst()
	o.settle(l)
}

// moveFirst moves the next line back to where its first request belongs now. Instances have about the same age, so that is near.
func (t *turn) moveFirst() {
	l, i := t.lines[t.next].line, t.next
	a := l.first().age
	for ; i+1 < len(t.lines) && t.lines[i+1].age.before(a); i++ {
		t.lines[i] = t.lines[i+1]
	}
	t.lines[i] = agedLine{a, l}
}

// settle restores the order of the turns that contain the next line, l.
func (o *order) settle(l *line) {
	for t := l.turn; t != nil; t = t.up {
		siblings := o.siblings(t, l.priority)
		if t.isEmpty() {
			t.pass = 0
			siblings.removeFirst()
			continue
		}
		if t.noteFirst(); len(*siblings) > 1 {
			heap.Fix(siblings, 0)
		}
	}
}

// siblings returns the heap that has the turn.
func (o *order) siblings(t *turn, priority int32) *turnHeap {
	if t.up != nil {
		return &t.up.below
	}
	return o.turnsOf(priority)
}

// removeFirst removes the first turn without comparing it, because it may be empty.
func (h *turnHeap) removeFirst() {
	last := len(*h) - 1
	h.Swap(0, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if last > 0 {
		heap.Fix(h, 0)
	}
}

// turnOf returns the account's turn of a priority.
func (a *account) turnOf(priority int32) *turn {
	t := a.turns[priority]
	if t == nil {
		if a.turns == nil {
			a.turns = map[int32]*turn{}
		}
		t = &turn{account: a}
		a.turns[priority] = t
	}
	t.up = nil
	if a.parent != nil {
		t.up = a.parent.turnOf(priority)
	}
	return t
}
