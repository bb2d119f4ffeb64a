package condition

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// weight measures values: how many bytes of text and how many elements, nested
// ones counted as often as they are reached. A value of CEL may hold one list
// many times over, so that a few of them weigh more than could ever be walked;
// the measuring stops at a bound.
type weight struct {
	bytes, elements int
	bound           int // of elements and of bytes/16
}

func (w *weight) full() bool {
	return w.elements > w.bound || w.bytes/16 > w.bound
}

// add measures a value and all that it holds.
func (w *weight) add(value ref.Val) {
	switch v := value.(type) {
	case types.String:
		w.bytes += len(v)
	case types.Bytes:
		w.bytes += len(v)
	case traits.Mapper:
		// Counted before they are walked: an iterator over a map copies its keys.
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

// length of a string in bytes, of a list or map in elements, 0 of all else.
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
