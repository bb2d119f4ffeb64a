//go:build unix

package pipes

import (
	"io"
	"syscall"
)

// next waits for output before it takes a buffer, so that a thousand silent
// tasks hold none. It returns a nil buffer if there was nothing to read. It
// always returns with the mutex order locked.
func (s *stream) next() (*Chunk, int, error) {
	raw, err := s.read.SyscallConn()
	if err != nil {
		s.order.Lock()
		return nil, 0, err
	}
	var buffer *Chunk
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		s.order.Lock()
		buffer = s.buffers.Get().(*Chunk)
		n, failed = readNow(fd, buffer)
		if failed == syscall.EAGAIN {
			s.buffers.Put(buffer)
			buffer, n, failed = nil, 0, nil
			s.order.Unlock()
			return false
		}
		return true
	})
	switch {
	case err != nil:
		s.order.Lock()
		return nil, 0, err
	case failed != nil:
		return buffer, 0, failed
	case n == 0:
		return buffer, 0, io.EOF
	}
	return buffer, n, nil
}

// drain writes the available output, up to about the capacity of a pipe.
func (s *stream) drain() {
	raw, err := s.read.SyscallConn()
	if err != nil {
		return
	}
	buffer := s.buffers.Get().(*Chunk)
	defer s.buffers.Put(buffer)
	s.order.Lock()
	defer s.order.Unlock()
	// An error means that the pipe is closed, so there is no output.
	_ = raw.Control(func(fd uintptr) {
		for range maxDrain {
			n, err := readNow(fd, buffer)
			if err != nil || n <= 0 {
				return
			}
			s.writeOut(buffer[:n])
		}
	})
}

// maxDrain bounds the number of chunks that drain reads.
const maxDrain = 2

func readNow(fd uintptr, buffer *Chunk) (n int, err error) {
	for {
		if n, err = syscall.Read(int(fd), buffer[:]); err != syscall.EINTR {
			return n, err
		}
	}
}
