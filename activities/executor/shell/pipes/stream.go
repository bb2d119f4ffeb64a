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
	// leakWait is how long a stream must be silent before it ends, once no process of the attempt is
	// left but a process outside of it holds the pipe open.
	leakWait = 250 * time.Millisecond
	// leakBytes bounds how much is read in that case. Anything beyond the capacity of a pipe was written
	// by the outside process, which may never stop.
	leakBytes = 1 << 20
)

// Chunk is a buffer for output.
type Chunk [chunkSize]byte

// stream copies the program's output to a writer. A silent stream holds no buffer and a busy one holds
// one chunk. A slow writer slows the program down.
type stream struct {
	read    *os.File
	write   *os.File
	to      io.Writer
	buffers *sync.Pool
	// before is the stream whose output is written first if both have some, since nothing shows in which
	// order it was printed. It is nil for the first stream.
	before *stream
	// order is held from reading output until it is written, so that drain cannot overtake copy.
	order sync.Mutex
	// treeEmpty is set when no process of the attempt is left, and left when another process is to copy the rest.
	treeEmpty, left atomic.Bool
	err             error
}

func newStream(to io.Writer, buffers *sync.Pool) (*stream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := adoptStream(read, to, buffers)
	s.write = write
	return s, nil
}

// adoptStream returns a stream without a write end.
func adoptStream(read *os.File, to io.Writer, buffers *sync.Pool) *stream {
	if to == nil {
		to = io.Discard
	}
	return &stream{read: read, to: to, buffers: buffers}
}

// leave makes copy return.
func (s *stream) leave() {
	s.left.Store(true)
	s.read.SetReadDeadline(time.Now())
}

// copy copies output until all writers have closed the pipe, or until soon after finish.
func (s *stream) copy() {
	left := leakBytes
	for left > 0 && !s.left.Load() {
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
		// The deadline that finish sets may expire while the writer is slow. Only a deadline that this
		// loop has set means silence.
		if err != nil && (over || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return
		}
	}
}

// writeOut writes output. The caller holds order. After an error it discards all further output: the
// program must neither hang nor die of SIGPIPE because its output cannot be written.
func (s *stream) writeOut(output []byte) {
	if s.err == nil {
		_, s.err = s.to.Write(output)
	}
}

// finish reports that no process of the attempt is left.
func (s *stream) finish() {
	s.treeEmpty.Store(true)
	s.read.SetReadDeadline(time.Now().Add(leakWait))
}
