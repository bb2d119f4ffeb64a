package condition

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// weight measures values: the bytes of text and the number of elements, where nested ones count as often as they are reached.
// Measuring stops at a bound, because a CEL value may hold the same list many times over, and a few levels of that could never
// be walked.
type weight struct {
	bytes, elements int
	bound           int // limit of elements, and of bytes/16
}

func (w *weight) full() bool {
	return w.elements > w.bound || w.bytes/16 > w.bound
}

// add measures a value and everything in it.
func (w *weight) add(value ref.Val) {
	switch v := value.(type) {
	case types.String:
		w.bytes += len(v)
	case types.Bytes:
		w.bytes += len(v)
	case traits.Mapper:
		// Counted before they are walked, because a map iterator copies the keys.
		w.elements += length(v)
		for it := v.Iterator(); !w.full() && it.HasNext() == types.True; {
			key := it.Next()
			w.add(key)
			w.add(v.Get(key))
		}
	case traits.Lister:
		w.elements += length(v)
		for i, n := 0, length(v); i < n && !w.full(); i++ {
			w.add(v.Get(types.Int(i)))
		}
	}
}

// length returns the length of a string in bytes, that of a list or map in elements, and 0 for anything else.
func length(value ref.Val) int {
	switch v := value.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return int(n)
		}
	}
	return 0
}
