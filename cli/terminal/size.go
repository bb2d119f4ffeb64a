package terminal

import (
	"context"
	"os"

	"golang.org/x/term"
)

// Size is the size of a terminal in characters.
type Size struct{ Columns, Rows uint16 }

// fallbackSize is the size of a terminal that reports none, as behind a serial line.
var fallbackSize = Size{80, 24}

// SizeOf returns the size of a terminal, or 80 x 24 if it reports none. The terminal may be closed concurrently.
func SizeOf(f *os.File) Size {
	conn, err := f.SyscallConn()
	if err != nil {
		return fallbackSize
	}
	var columns, rows int
	closed := conn.Control(func(fd uintptr) { columns, rows, err = term.GetSize(int(fd)) })
	if closed != nil || err != nil || columns <= 0 || rows <= 0 || columns > 0xffff || rows > 0xffff {
		return fallbackSize
	}
	return Size{uint16(columns), uint16(rows)}
}

// Resizes sends the size of a terminal each time it differs from the last known one, until ctx ends. If several sizes
// are pending, it sends only the last one.
func Resizes(ctx context.Context, f *os.File, last Size) <-chan Size {
	changed, sizes := make(chan os.Signal, 1), make(chan Size)
	release := onResize(changed)
	go func() {
		defer release()
		for {
			next, to := SizeOf(f), chan<- Size(nil)
			if next != last {
				to = sizes
			}
			select {
			case <-changed:
			case to <- next:
				last = next
			case <-ctx.Done():
				return
			}
		}
	}()
	return sizes
}
