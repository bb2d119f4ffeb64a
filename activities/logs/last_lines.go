package logs

import (
	"bytes"
	"context"
	"fmt"

	"switchyard/activities/store/storekey"
)

// lastChunks is how many chunks LastLines reads. A chunk holds up to 2 MiB.
const lastChunks = 2

// LastLines returns the last lines, at most n, of the newest dispatch of a task or an instance that has printed something in a
// generation, in the order in which they were completed. It returns nothing if there is no such log.
func LastLines(ctx context.Context, s Store, run string, generation int32, task string, n int) ([]string, error) {
	all, err := Attempts(ctx, s, run, task)
	if err != nil {
		return nil, err
	}
	for len(all) > 0 && all[len(all)-1].Generation > generation {
		all = all[:len(all)-1]
	}
	if len(all) == 0 || all[len(all)-1].Generation < generation {
		return nil, nil
	}
	newest := all[len(all)-1]
	chunks := int64(0)
	for key, err := range s.Keys(ctx, newest.prefix()) {
		if err != nil {
			return nil, fmt.Errorf("list the log of task %s of run %s: %w", task, run, err)
		}
		if _, chunk, ok := storekey.ParseLogChunk(key); ok {
			chunks = max(chunks, chunk+1)
		}
	}
	lines := lastLines{n: n, open: map[string][]byte{}}
	for from := max(0, chunks-lastChunks); from < chunks; {
		entries, next, _, err := read(ctx, s, newest, from)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			lines.add(e.GetStream(), e.GetData())
		}
		if next == from {
			break
		}
		from = next
	}
	return lines.finish(), nil
}

// lastLines keeps the last lines of streams.
type lastLines struct {
	n      int
	kept   []string
	open   map[string][]byte // by stream, the start of the line that has not ended
	opened []string          // the streams in open, in order
}

func (l *lastLines) add(stream string, data []byte) {
	for len(data) > 0 {
		text, rest, whole := bytes.Cut(data, []byte("\n"))
		if _, isOpen := l.open[stream]; !isOpen {
			l.opened = append(l.opened, stream)
		}
		l.open[stream] = append(l.open[stream], text...)
		if whole {
			l.keep(stream)
		}
		data = rest
	}
}

func (l *lastLines) keep(stream string) {
	line, isOpen := l.open[stream]
	if !isOpen {
		return
	}
	delete(l.open, stream)
	l.kept = append(l.kept, string(line))
	l.kept = l.kept[max(0, len(l.kept)-l.n):]
}

// finish returns the lines, with those that have not ended last.
func (l *lastLines) finish() []string {
	for _, stream := range l.opened {
		l.keep(stream)
	}
	return l.kept
}
