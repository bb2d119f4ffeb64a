package tool

import (
	"fmt"
	"io"
	"sync"
)

// Bounds for the output of a command.
const (
	// maxPrinted is the output after which a command is ended, in bytes.
	maxPrinted = 64 << 20
	// shownHead and shownTail are how much of the start and the end the model reads, in bytes.
	shownHead = 16 << 10
	shownTail = 16 << 10
)

// output collects what a command prints to both streams, in order of arrival. Two goroutines may write at once.
type output struct {
	sink io.Writer // or nil
	// flooded is called once when more than max bytes have been printed.
	flooded func()
	max     int64

	mu    sync.Mutex
	total int64
	head  []byte
	tail  []byte // a ring buffer of the last bytes after head
	at    int    // the position of the next byte in tail
}

// Write passes p on to sink, and keeps only what will be shown.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	left := max(o.max-o.total, 0)
	if int64(n) > left && o.total <= o.max {
		o.flooded()
	}
	o.total += int64(n)
	if p = p[:min(int64(n), left)]; len(p) == 0 {
		return n, nil
	}
	o.retain(p)
	if o.sink != nil {
		if _, err := o.sink.Write(p); err != nil {
			o.sink = nil
			return n, err
		}
	}
	return n, nil
}

func (o *output) retain(p []byte) {
	free := shownHead - len(o.head)
	o.head = append(o.head, p[:min(free, len(p))]...)
	p = p[min(free, len(p)):]
	p = p[max(0, len(p)-shownTail):]
	for len(p) > 0 {
		if len(o.tail) < shownTail {
			n := min(shownTail-len(o.tail), len(p))
			o.tail = append(o.tail, p[:n]...)
			p = p[n:]
			continue
		}
		n := copy(o.tail[o.at:], p)
		o.at = (o.at + n) % shownTail
		p = p[n:]
	}
}

// text returns the part of the output that the model reads.
func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := string(o.tail[o.at:]) + string(o.tail[:o.at])
	left := min(o.total, o.max) - int64(len(o.head)+len(tail))
	if left <= 0 {
		return cleanText(string(o.head) + tail)
	}
	return cleanText(fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", o.head, left, tail))
}
