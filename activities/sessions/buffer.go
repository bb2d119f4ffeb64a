package sessions

import (
	"io"
	"sync"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxInput bounds the standard input that waits for a program to read it, in bytes. Clients that send more are not read
	// until there is room; those that keep to it never have a signal wait behind their input.
	maxInput = 1 << 20
	// readStep is the number of bytes that a program reads between two reports to its client.
	readStep = maxInput / 8
)

// input feeds the standard input of a program, and reports to the client what has been read. It has one reader.
type input struct {
	buffer *buffer
	out    *frames
	untold int
}

// Read waits for input.
func (i *input) Read(p []byte) (int, error) {
	n, err := i.buffer.Read(p)
	if i.untold += n; i.untold >= readStep {
		_ = i.out.send(&v1.SessionFrame{Frame: &v1.SessionFrame_StdinRead{StdinRead: uint32(i.untold)}}) // the client may have left
		i.untold = 0
	}
	return n, err
}

// buffer is standard input on its way to a program.
type buffer struct {
	mu     sync.Mutex
	change sync.Cond
	chunks [][]byte
	size   int
	ended  bool // no more is added
	closed bool // no more is read
}

func newBuffer() *buffer {
	b := &buffer{}
	b.change.L = &b.mu
	return b
}

// add adds input, which the buffer owns then. It waits for room.
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

// end says that the input has ended.
func (b *buffer) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.change.Broadcast()
}

// close throws the input away, and ends what waits.
func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.chunks, b.size = true, nil, 0
	b.change.Broadcast()
}

// Read waits for input.
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
