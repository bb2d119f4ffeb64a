package disk

import (
	"strings"
	"testing"
)

func FuzzRecognize(f *testing.F) {
	f.Add([]byte{}, "a.img")
	f.Add([]byte("text"), "a")
	f.Add([]byte(qcow2Magic+strings.Repeat("\x00", 100)), "a")
	f.Add(append([]byte(qcow2Magic), make([]byte, 76)...), "a")
	f.Fuzz(func(t *testing.T, begin []byte, name string) {
		format, err := recognize(begin, name)
		if (err == nil) != (format == FormatQcow2 || format == FormatRaw) {
			t.Errorf("format %q, error %v", format, err)
		}
		if format != FormatQcow2 {
			return
		}
		if size, err := readQcow2Header(begin, 1<<20); err == nil && (size < 1 || size > maxVirtualSize) {
			t.Errorf("size %d", size)
		}
	})
}
