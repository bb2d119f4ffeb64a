package view

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The list holds each index once, in the order in which it was last put at the end.
func TestOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := newOrder()
		var want []int
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			i := rapid.IntRange(0, 12).Draw(t, "index")
			o.toEnd(i)
			want = append(slices.DeleteFunc(want, func(k int) bool { return k == i }), i)
		}
		var forth, back []int
		for i := o.first; i >= 0; i = o.after(i) {
			forth = append(forth, i)
		}
		for i := o.last; i >= 0; i = o.before(i) {
			back = append(back, i)
		}
		slices.Reverse(back)
		if !slices.Equal(forth, want) || !slices.Equal(back, want) {
			t.Fatalf("forth %v, back %v, want %v", forth, back, want)
		}
	})
}
