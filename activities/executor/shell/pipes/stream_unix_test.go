//go:build unix

package pipes

import (
	"strings"
	"sync"
	"testing"
)

// lines records the order in which two streams are written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	l.news <- struct{}{}
	return len(p), nil
}

// Output arrives in the order in which it was printed. If both streams have some
// before the node reads, standard output comes first.
func TestStandardOutputComesBeforeWhatFollowsOnStandardError(t *testing.T) {
	buffers := &sync.Pool{New: func() any { return new(Chunk) }}
	for range 50 {
		l := &lines{news: make(chan struct{}, 8)}
		p, err := NewDedicated(l, l, buffers)
		if err != nil {
			t.Fatal(err)
		}
		say := func(stream interface{ WriteString(string) (int, error) }, text string) {
			t.Helper()
			if _, err := stream.WriteString(text); err != nil {
				t.Fatal(err)
			}
		}
		out, errs := p.Files()
		say(errs, "b")
		say(out, "a")
		p.Begin()
		<-l.news
		<-l.news
		say(errs, "c")
		<-l.news
		say(out, "d")
		<-l.news
		p.Forked()
		if err := p.Finish(); err != nil {
			t.Fatal(err)
		}
		if got := l.text.String(); got != "abcd" {
			t.Fatalf("written as %q, want abcd", got)
		}
	}
}
