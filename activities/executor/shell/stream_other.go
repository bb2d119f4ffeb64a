//go:build !unix

package shell

// next reads into a buffer that is held while it waits.
func (s *stream) next() (*chunk, int, error) {
	buffer := s.buffers.Get().(*chunk)
	n, err := s.read.Read(buffer[:])
	return buffer, n, err
}
