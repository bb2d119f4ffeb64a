package terminal

import (
	"io"
	"sync"
)

// maxTyped bounds what was typed, or pasted, and has not been read yet.
const maxTyped = 1 << 20

// Input is what is typed on a terminal, without its escapes. It reads ahead, so that an escape has its effect while nothing
// takes what was typed before, because the connection to the program has gone.
type Input struct {
	leave, help func()

	mu      sync.Mutex
	changed sync.Cond
	typed   []byte
	err     error // of the terminal, after typed
}

// NewInput reads a terminal until it ends. It calls leave at `~.`, after which there is nothing more to read, and help at
// `~?`. Its goroutine ends with the process if the terminal does not end before.
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

// append adds text, and waits while there is too much of it. It reports whether more can follow.
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

// Read returns what was typed. It waits for something.
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
