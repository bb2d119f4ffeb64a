package credentials

import (
	"sync"
	"time"
)

// lookInterval is the shortest interval between two checks of a token file.
const lookInterval = time.Second

// Source is a token in a file that may be replaced while the process uses it. It is safe for concurrent use.
type Source struct {
	path string

	mu     sync.Mutex
	token  string
	looked time.Time
}

// NewSource returns a source that reads the token in a file.
func NewSource(path string) (*Source, error) {
	s := &Source{path: path}
	return s, s.read(time.Now())
}

// read reads the file. The caller holds mu, unless no other goroutine has s.
func (s *Source) read(now time.Time) error {
	s.looked = now
	token, err := ReadToken(s.path)
	if err == nil {
		s.token = token
	}
	return err
}

// Token returns the token that the file held within the last second. While the file has no readable token, Token
// returns the previous one.
func (s *Source) Token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.looked) >= lookInterval {
		_ = s.read(now) // if the file is being replaced, a later check succeeds
	}
	return s.token
}
