package guest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/activities/executor/tartree"
)

const (
	outputBuffer = 32 << 10
	// maxNoise bounds what login shells may print before the mark, in bytes.
	maxNoise = 1 << 20
	// endOfText is what a terminal takes for the end of the input.
	endOfText = "\x04"
	// drainWait bounds the wait for the last output of a program that has ended, if another one that holds its output open prints.
	drainWait = 2 * time.Second
	// drainPause is the time between two questions whether more output is to come, and drainRounds how many find none.
	drainPause, drainRounds = 15 * time.Millisecond, 3
)

// output is what is known of the output of a program.
type output struct {
	// activity counts the reads, and writing the writes that last.
	activity atomic.Int64
	writing  atomic.Int64

	mu sync.Mutex
	// noise is what was printed in place of the mark.
	noise  []byte
	marked bool
	// err is the first error of a writer.
	err error
}

// copyAll starts the program, and passes on its output until the channel is closed.
func (x *execution) copyAll() {
	defer close(x.copied)
	var both sync.WaitGroup
	both.Go(func() { x.copyOut(x.channel.Stderr(), x.command.Stderr) })
	both.Go(func() {
		if x.start() {
			go x.copyIn() // a Read may last
			x.copyOut(x.channel, x.command.Stdout)
		}
	})
	both.Wait()
}

// start waits for the mark of the launcher and tells it what to do. With a terminal it waits until that is as it was.
func (x *execution) start() bool {
	number, rest, ok := x.awaitMark(nil)
	if !ok {
		return false
	}
	x.pid = number
	x.mu.Lock()
	x.marked = true
	x.mu.Unlock()
	x.sent.Store(true)
	if _, err := io.WriteString(x.channel, x.line+"\n"); err != nil {
		return false
	}
	if x.command.Terminal != nil {
		if _, rest, ok = x.awaitMark(rest); !ok {
			return false
		}
	}
	close(x.started)
	x.write(x.command.Stdout, rest)
	return true
}

// awaitMark reads until a mark, and returns its number and what was printed after it.
func (x *execution) awaitMark(read []byte) (number int, rest []byte, ok bool) {
	buffer := make([]byte, outputBuffer)
	for {
		if number, rest, ok = cutMark(read, x.token); ok {
			return number, rest, true
		}
		if len(read) > maxNoise {
			read = append(read[:0], read[len(read)-maxNoise/2:]...)
		}
		n, err := x.channel.Read(buffer)
		x.activity.Add(1)
		read = append(read, buffer[:n]...)
		if err != nil {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.noise = read
			return 0, nil, false
		}
	}
}

// cutMark returns the number in the first mark of a text, and what follows the mark.
func cutMark(text []byte, token string) (number int, rest []byte, ok bool) {
	_, after, found := bytes.Cut(text, []byte(markByte+token+" "))
	if !found {
		return 0, nil, false
	}
	digits, rest, found := bytes.Cut(after, []byte(markByte))
	if !found {
		return 0, nil, false
	}
	number, err := strconv.Atoi(string(digits))
	return number, rest, err == nil
}

// copyOut passes on one stream. After an error of the writer the rest is thrown away.
func (x *execution) copyOut(from io.Reader, to io.Writer) {
	buffer := make([]byte, outputBuffer)
	for {
		n, err := from.Read(buffer)
		x.writing.Add(1)
		x.activity.Add(1)
		x.write(to, buffer[:n])
		x.writing.Add(-1)
		if err != nil {
			return
		}
	}
}

func (x *execution) write(to io.Writer, data []byte) {
	if to == nil || len(data) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		_, x.err = to.Write(data)
	}
}

// copyIn passes on the input, and its end.
func (x *execution) copyIn() {
	last := &lastByte{to: x.channel, last: '\n'}
	if x.command.Stdin != nil {
		if _, err := io.Copy(last, x.command.Stdin); err != nil {
			return // it may not look like the end of the input
		}
	}
	switch {
	case x.command.Terminal == nil:
		_ = x.channel.CloseWrite()
	case x.command.Stdin != nil:
		// A terminal has no end. In an unfinished line the first byte sends what there is of it.
		end := endOfText
		if !strings.ContainsRune("\n\r"+endOfText, rune(last.last)) {
			end += endOfText
		}
		_, _ = io.WriteString(x.channel, end)
	}
}

// lastByte remembers the last byte that is written.
type lastByte struct {
	to   io.Writer
	last byte
}

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.last = p[len(p)-1]
	}
	return l.to.Write(p)
}

// drain waits until all output of a program that has ended was passed on, and reports whether it was. OpenSSH does not close the
// channel while another program has the output open. It reads that between two answers, though, so that nothing is left when
// nothing has come between several.
func (x *execution) drain(ctx context.Context) bool {
	limit := time.NewTimer(drainWait)
	defer limit.Stop()
	for quiet := 0; quiet < drainRounds; {
		select {
		case <-x.copied:
			return true
		case <-ctx.Done():
			return false
		case <-x.closed: // what has come is still copied
			select {
			case <-x.copied:
				return true
			case <-ctx.Done():
				return false
			}
		case <-limit.C:
			if x.writing.Load() == 0 {
				quiet = drainRounds
				continue
			}
			limit.Reset(drainWait) // the writer is slow
		case <-time.After(drainPause):
		}
		before := x.activity.Load()
		if err := x.channel.connection.ping(ctx); err != nil && ctx.Err() != nil {
			return false
		}
		if x.activity.Load() == before && x.writing.Load() == 0 {
			quiet++
		} else {
			quiet = 0
		}
	}
	// The sshd answers with its own end, before which what has come is copied.
	go func() { _ = x.channel.Close() }()
	wait := time.NewTimer(killWait)
	defer wait.Stop()
	select {
	case <-x.copied:
	case <-ctx.Done():
		return false
	case <-wait.C:
	}
	return true
}

// failure returns what the machine prints in place of the mark, or "" if the launcher has started.
func (x *execution) failure() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.marked {
		return ""
	}
	if text := tartree.OneLine(strings.TrimSpace(string(x.noise))); text != "" {
		return text
	}
	return "its login shell has ended at once"
}

// errOver is the error of what is printed after the call has ended.
var errOver = errors.New("the call has ended")

// stopWriting waits for a write that lasts, and lets none follow.
func (x *execution) stopWriting() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.err = errOver
}

// writeError returns the first error of a writer.
func (x *execution) writeError() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}
