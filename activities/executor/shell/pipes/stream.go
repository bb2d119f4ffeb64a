package pipes

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	chunkSize = 32 << 10
	// leakWait is how long a stream may stay silent once no process of the
	// attempt is left, but something outside of it holds the pipe open.
	leakWait = 250 * time.Millisecond
	// leakBytes is what is still read then. More than a pipe holds was written
	// by that outsider, which may never stop.
	leakBytes = 1 << 20
)

// Chunk is a buffer for output.
type Chunk [chunkSize]byte

// stream copies what the program prints to a writer. A silent stream holds no
// buffer, a busy one holds one chunk; a slow writer slows the program down.
type stream struct {
	read    *os.File
	write   *os.File
	to      io.Writer
	buffers *sync.Pool
	// before is the stream whose output comes first where both have some, because nothing shows in which
	// order it was printed, or nil if that is this one.
	before *stream
	// order is held from reading output until it is written, so that drain cannot overtake copy.
	order sync.Mutex
	// treeEmpty is set when no process is left that could belong to the attempt.
	treeEmpty atomic.Bool
	err       error
}

func newStream(to io.Writer, buffers *sync.Pool) (*stream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if to == nil {
		to = io.Discard
	}
	return &stream{read: read, write: write, to: to, buffers: buffers}, nil
}

// copy returns when all writers have closed the pipe, or soon after finish.
func (s *stream) copy() {
	left := leakBytes
	for left > 0 {
		over := s.treeEmpty.Load()
		if over {
			s.read.SetReadDeadline(time.Now().Add(leakWait))
		}
		buffer, n, err := s.next()
		if n > 0 {
			if s.before != nil {
				s.before.drain()
			}
			s.writeOut(buffer[:n])
		}
		s.order.Unlock()
		if buffer != nil {
			s.buffers.Put(buffer)
		}
		if over {
			left -= n
		}
		// A deadline that finish has set may strike while the writer was slow;
		// only one that this loop has set means silence.
		if err != nil && (over || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return
		}
	}
}

// writeOut writes output. The caller holds turn. The program must not hang, nor die of
// SIGPIPE, because its output has no place: what follows an error is thrown away.
func (s *stream) writeOut(output []byte) {
	if s.err == nil {
		_, s.err = s.to.Write(output)
	}
}

// finish says that no process of the attempt is left.
func (s *stream) finish() {
	s.treeEmpty.Store(true)
	s.read.SetReadDeadline(time.Now().Add(leakWait))
}
