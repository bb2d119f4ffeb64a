package admission

import "container/heap"

// ranked is an element of a heap. at points to the index that it stores for the heap, or -1 if it is in none.
type ranked[T any] interface {
	before(T) bool
	at() *int
}

// ranks is a heap whose top is the element that may continue first.
type ranks[T ranked[T]] struct{ list list[T] }

// set inserts x, moves it to its new position, or removes it.
func (r *ranks[T]) set(x T, in bool) {
	switch i := *x.at(); {
	case in && i < 0:
		heap.Push(&r.list, x)
	case in:
		heap.Fix(&r.list, i)
	case i >= 0:
		heap.Remove(&r.list, i)
	}
}

func (r *ranks[T]) len() int { return len(r.list) }

// top returns the first element. The heap must not be empty.
func (r *ranks[T]) top() T { return r.list[0] }

// list implements heap.Interface.
type list[T ranked[T]] []T

func (l list[T]) Len() int           { return len(l) }
func (l list[T]) Less(i, j int) bool { return l[i].before(l[j]) }

func (l list[T]) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	*l[i].at(), *l[j].at() = i, j
}

func (l *list[T]) Push(x any) {
	t := x.(T)
	*t.at() = len(*l)
	*l = append(*l, t)
}

func (l *list[T]) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	var none T
	(*l)[last] = none
	*l = (*l)[:last]
	*x.at() = -1
	return x
}
