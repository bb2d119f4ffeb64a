package sessions

import (
	"io"
	"sync"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxInput bounds the standard input in bytes that waits for a program to read it. Beyond that the node stops reading
	// from the client until there is room, and the client's signals wait. A client that respects the window never gets
	// there.
	maxInput = 1 << 20
	// readStep is the number of bytes that a program reads between two reports to the client.
	readStep = maxInput / 8
)

// input feeds the standard input of a program and reports to the client how much the program has read. It supports one
// reader.
type input struct {
	buffer *buffer
	out    *frames
	untold int
}

// Read reads buffered input. It blocks until there is some or the input has ended.
func (i *input) Read(p []byte) (int, error) {
	n, err := i.buffer.Read(p)
	if i.untold += n; i.untold >= readStep {
		_ = i.out.send(&v1.SessionFrame{Frame: &v1.SessionFrame_StdinRead{StdinRead: uint32(i.untold)}}) // an error means that the client has left
		i.untold = 0
	}
	return n, err
}

// buffer holds the standard input that a program has not read yet.
type buffer struct {
	mu     sync.Mutex
	change sync.Cond
	chunks [][]byte
	size   int
	ended  bool // no more input is added
	closed bool // no more input is read
}

func newBuffer() *buffer {
	b := &buffer{}
	b.change.L = &b.mu
	return b
}

// add appends a chunk of input and takes ownership of it. It blocks while the buffer is full.
func (b *buffer) add(chunk []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.size >= maxInput && !b.closed {
		b.change.Wait()
	}
	if b.ended || b.closed || len(chunk) == 0 {
		return
	}
	b.chunks = append(b.chunks, chunk)
	b.size += len(chunk)
	b.change.Broadcast()
}

// end marks the end of the input.
func (b *buffer) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.change.Broadcast()
}

// close discards the buffered input and unblocks all callers.
func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.chunks, b.size = true, nil, 0
	b.change.Broadcast()
}

// Read reads buffered input. It blocks until there is some, and returns io.EOF at the end.
func (b *buffer) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.chunks) == 0 {
		if b.ended || b.closed {
			return 0, io.EOF
		}
		b.change.Wait()
	}
	n := copy(p, b.chunks[0])
	b.size -= n
	if b.chunks[0] = b.chunks[0][n:]; len(b.chunks[0]) == 0 {
		b.chunks[0] = nil
		b.chunks = b.chunks[1:]
	}
	b.change.Broadcast()
	return n, nil
}
