package credentials

import (
	"os"
	"sync"
	"time"
)

// lookInterval is the shortest time between two looks at a file with a token.
const lookInterval = time.Second

// Source is the token in a file, which may be replaced while a process uses it. It is safe for concurrent use.
type Source struct {
	path string

	mu       sync.Mutex
	token    string
	modified time.Time
	looked   time.Time
}

// NewSource returns the token in a file.
func NewSource(path string) (*Source, error) {
	s := &Source{path: path}
	return s, s.read(time.Now())
}

// read reads the file. mu is held, or no other goroutine has s.
func (s *Source) read(now time.Time) error {
	s.looked = now
	info, err := os.Stat(s.path)
	if err == nil && info.ModTime().Equal(s.modified) {
		return nil
	}
	token, err := ReadToken(s.path)
	if err != nil {
		return err
	}
	s.token, s.modified = token, info.ModTime()
	return nil
}

// Token returns the token that was in the file within the last second. While the file has none that can be read, that is
// the one before.
func (s *Source) Token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.looked) >= lookInterval {
		_ = s.read(now) // the file is being replaced, or a later look finds it in order
	}
	return s.token
}
