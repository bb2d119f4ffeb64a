//go:build !unix

package pipes

// next reads into a buffer that is held while it waits. It returns with turn held.
func (s *stream) next() (*Chunk, int, error) {
	buffer := s.buffers.Get().(*Chunk)
	n, err := s.read.Read(buffer[:])
	s.order.Lock()
	return buffer, n, err
}

// drain does nothing: only a read that may wait would show whether there is output.
func (s *stream) drain() {}
