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
	// maxNoise bounds how much output before the mark is searched, in bytes.
	maxNoise = 1 << 20
	// endOfText is the byte that a terminal reads as the end of the input.
	endOfText = "\x04"
	// drainWait bounds the wait for the last output of an ended program while another process that holds its output
	// open prints.
	drainWait = 10 * time.Second
	// drainPause is the time between two checks for more output. drainRounds is how many checks in a row must find
	// none.
	drainPause, drainRounds = 15 * time.Millisecond, 3
)

// output is the state of a program's output.
type output struct {
	// activity counts the reads; writing counts the writes in progress.
	activity atomic.Int64
	writing  atomic.Int64

	mu sync.Mutex
	// noise is what was printed in place of the mark.
	noise  []byte
	marked bool
	// err is the first write error.
	err error
}

// copyAll starts the program and passes its output on until the channel is closed.
func (x *execution) copyAll() {
	defer close(x.copied)
	var both sync.WaitGroup
	both.Go(func() { x.copyOut(x.channel.Stderr(), x.command.Stderr) })
	both.Go(func() {
		if x.handshake() {
			go x.copyIn() // a Read may block for a long time
			x.copyOut(x.channel, x.command.Stdout)
		}
	})
	both.Wait()
}

// handshake waits for the launcher's mark and sends the instructions. With a terminal, handshake also waits until the terminal
// has its original mode again.
func (x *execution) handshake() bool {
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

// awaitMark reads until a mark, and returns the number in the mark and the output that follows it.
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

// cutMark returns the number in the first mark of a text, and the text after the mark.
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

// copyOut passes on one stream. After a write error it discards the rest.
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

// copyIn passes on the input and the end of the input.
func (x *execution) copyIn() {
	last := &lastByte{to: x.channel, last: '\n'}
	if x.command.Stdin != nil {
		if _, err := io.Copy(last, x.command.Stdin); err != nil {
			return // a failed read must not look like the end of the input
		}
	}
	switch {
	case x.command.Terminal == nil:
		_ = x.channel.CloseWrite()
	case x.command.Stdin != nil:
		// A terminal has no end of input. In an unfinished line, the first endOfText only flushes the line.
		end := endOfText
		if !strings.ContainsRune("\n\r"+endOfText, rune(last.last)) {
			end += endOfText
		}
		_, _ = io.WriteString(x.channel, end)
	}
}

// lastByte remembers the last byte written.
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

// drain waits until all output of an ended program was passed on, and reports whether it was. OpenSSH does not close
// the channel while another process holds the output open. It does read the output between two answers, so several
// pings without new output mean that none is left.
func (x *execution) drain(ctx context.Context) bool {
	limit := time.NewTimer(drainWait)
	defer limit.Stop()
	for quiet := 0; quiet < drainRounds; {
		select {
		case <-x.copied:
			return true
		case <-ctx.Done():
			return false
		case <-x.closed: // output that has arrived is still copied
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
	// The sshd answers with its own close. Output that arrives before that is still copied.
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

// failure returns the output that the machine printed in place of the mark, or "" if the launcher has started.
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

// errOver rejects output after the call has ended.
var errOver = errors.New("the call has ended")

// stopWriting waits for a write in progress and prevents further writes.
func (x *execution) stopWriting() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.err = errOver
}

// writeError returns the first write error.
func (x *execution) writeError() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}
