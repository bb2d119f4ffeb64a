//go:build unix

package shell

import (
	"io"
	"syscall"
)

// next waits for output before it takes a buffer, so that a thousand silent
// tasks hold none. It returns a nil buffer when there was nothing to read.
func (s *stream) next() (*chunk, int, error) {
	raw, err := s.read.SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	var buffer *chunk
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		buffer = s.buffers.Get().(*chunk)
		for {
			n, failed = syscall.Read(int(fd), buffer[:])
			if failed != syscall.EINTR {
				break
			}
		}
		if failed == syscall.EAGAIN {
			s.buffers.Put(buffer)
			buffer, n, failed = nil, 0, nil
			return false
		}
		return true
	})
	switch {
	case err != nil:
		return nil, 0, err
	case failed != nil:
		return buffer, 0, failed
	case n == 0:
		return buffer, 0, io.EOF
	}
	return buffer, n, nil
}
