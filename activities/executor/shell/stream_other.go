//go:build !unix

package shell

// next reads into a buffer that is held while it waits. It returns with turn held.
func (s *stream) next() (*chunk, int, error) {
	buffer := s.buffers.Get().(*chunk)
	n, err := s.read.Read(buffer[:])
	s.turn.Lock()
	return buffer, n, err
}

// drain does nothing: only a read that may wait would tell whether there is output.
func (s *stream) drain() {}
