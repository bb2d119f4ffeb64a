package terminal

import (
	"io"
	"sync"
)

// maxTyped bounds typed or pasted bytes that have not been read yet.
const maxTyped = 1 << 20

// Input is the typed input of a terminal without its escapes. It reads ahead, so that an escape takes effect even while
// earlier input stays unread because the connection to the program was lost.
type Input struct {
	leave, help func()

	mu      sync.Mutex
	changed sync.Cond
	typed   []byte
	err     error // error of the terminal, returned after typed
}

// NewInput reads a terminal until it ends. It calls leave at `~.`, which ends the input, and help at `~?`. If the
// terminal does not end, the goroutine lives as long as the process.
func NewInput(from io.Reader, leave, help func()) *Input {
	in := &Input{leave: leave, help: help}
	in.changed.L = &in.mu
	go in.pump(from)
	return in
}

func (in *Input) pump(from io.Reader) {
	var e escapes
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		text, f := e.scan(nil, buffer[:n])
		for range f.help {
			in.help()
		}
		if f.leave {
			err = io.EOF
			in.leave()
		}
		if !in.append(text, err) {
			return
		}
	}
}

// append adds text, and waits while too much of it is unread. It reports whether more input can follow.
func (in *Input) append(text []byte, err error) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.typed) >= maxTyped && err == nil {
		in.changed.Wait()
	}
	in.typed, in.err = append(in.typed, text...), err
	in.changed.Broadcast()
	return err == nil
}

// Read returns typed input. It blocks until there is some.
func (in *Input) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.typed) == 0 && in.err == nil {
		in.changed.Wait()
	}
	if len(in.typed) == 0 {
		return 0, in.err
	}
	n := copy(p, in.typed)
	in.typed = in.typed[n:]
	if len(in.typed) == 0 {
		in.typed = nil
	}
	in.changed.Broadcast()
	return n, nil
}
