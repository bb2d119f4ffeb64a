//go:build !unix

package pipes

// next waits for output and reads it into a buffer, which it occupies while it
// waits. It returns with the mutex order locked.
func (s *stream) next() (*Chunk, int, error) {
	buffer := s.buffers.Get().(*Chunk)
	n, err := s.read.Read(buffer[:])
	s.order.Lock()
	return buffer, n, err
}

// drain does nothing, since only a blocking read would show whether there is
// output.
func (s *stream) drain() {}
