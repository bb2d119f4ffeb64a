package logs

import (
	"hash/crc32"
	"runtime"
	"testing"
)

// TestOutputInBoundedMemory checks that all output is stored, and hardly any stays in memory.
func TestOutputInBoundedMemory(t *testing.T) {
	const size = int64(64 << 20)
	s := open(t, t.TempDir())
	w := NewWriter(s, attempt, Options{MaxBytes: size})
	// Writes resemble those of a pipe: 32 KiB at once, and never the same twice.
	block := []byte(filler(32 << 10))
	heap := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	runtime.GC()
	before, most := heap(), int64(0)
	want := crc32.NewIEEE()
	for printed := int64(0); printed < size; printed += int64(len(block)) {
		block[printed/int64(len(block))%int64(len(block))]++
		_, _ = want.Write(block)
		write(t, w, Stdout, string(block))
		if printed%(8<<20) == 0 {
			most = max(most, heap()-before)
		}
	}
	closeWriter(t, w)
	// This includes garbage; only the two chunks and the tails are live.
	if most > 48<<20 {
		t.Errorf("the heap grew by %d MiB", most>>20)
	}
	t.Logf("the heap grew by %d MiB at most", most>>20)

	got, read := crc32.NewIEEE(), int64(0)
	for from, ended := int64(0), false; !ended; {
		entries, next, end, err := Read(t.Context(), s, attempt, from)
		if err != nil || next == from {
			t.Fatalf("Read from %d: next %d, %v", from, next, err)
		}
		for _, e := range entries {
			_, _ = got.Write(e.Data)
			read += int64(len(e.Data))
		}
		from, ended = next, end
	}
	if read != size || got.Sum32() != want.Sum32() {
		t.Errorf("read back %d bytes with sum %x, want %d with %x", read, got.Sum32(), size, want.Sum32())
	}
}
