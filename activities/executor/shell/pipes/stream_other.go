//go:build !unix

package pipes

// next reads into a buffer, which it holds while it waits. It returns with order
// held.
func (s *stream) next() (*Chunk, int, error) {
	buffer := s.buffers.Get().(*Chunk)
	n, err := s.read.Read(buffer[:])
	s.order.Lock()
	return buffer, n, err
}

// drain does nothing, since only a blocking read would show whether there is
// output.
func (s *stream) drain() {}
