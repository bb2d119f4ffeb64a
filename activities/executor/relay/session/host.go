package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"switchyard/activities/executor/subagent/program/streamjson"
)

const (
	// maxWaiting bounds the messages that wait for their turn.
	maxWaiting = 100
	// maxRequest bounds a message, in bytes.
	maxRequest = 64 << 20
	// requestTimeout is how long a relay may take to send its message.
	requestTimeout = 30 * time.Second
	// interruptWait is how long an interrupted program may take to print its result before the next turn begins.
	interruptWait = 500 * time.Millisecond
	// acceptPause is the delay after a failed accept.
	acceptPause = 100 * time.Millisecond
)

// host passes messages to a program, one at a time.
type host struct {
	stdin *os.File
	log   io.Writer
	turns chan *turn
	// ended is closed when the program has ended; why is set before that.
	ended chan struct{}
	why   string
	work  sync.WaitGroup

	id string

	mu      sync.Mutex
	current *turn
	// owed counts the abandoned turns whose results the program has not printed yet.
	owed       int
	waiting    int
	interrupts int
	view       *streamjson.Transcript
}

func newHost(stdin *os.File, log io.Writer) *host {
	return &host{
		stdin: stdin, log: log, turns: make(chan *turn, maxWaiting), ended: make(chan struct{}),
		view: streamjson.NewTranscript(time.Now),
	}
}

// serve accepts relays to a session and passes their messages to the program.
func (h *host) serve(id string, l net.Listener) {
	h.id = id
	h.work.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // such as too many open files
				time.Sleep(acceptPause)
				continue
			}
			h.work.Go(func() { h.serveConn(conn) })
		}
	})
	h.work.Go(func() {
		for {
			select {
			case t := <-h.turns:
				h.run(t)
			case <-h.ended:
				return
			}
		}
	})
}

// close ends the session after its listener is closed. Waiting relays fail with why.
func (h *host) close(why string) {
	h.why = why
	close(h.ended)
	h.stdin.Close()
	h.work.Wait()
}

// serveConn reads the message of a relay and waits until it is answered.
func (h *host) serveConn(conn net.Conn) {
	defer conn.Close()
	r, ok := h.readRequest(conn)
	if !ok {
		return // such as a connection that only probes whether the session is alive
	}
	_ = conn.SetReadDeadline(time.Time{})
	t := newTurn(conn, r)
	h.work.Go(func() {
		defer close(t.gone)
		_, _ = io.Copy(io.Discard, conn)
	})
	if !h.enqueue(t) {
		t.send(frame{Error: fmt.Sprintf("%d messages are already queued", maxWaiting)})
		return
	}
	defer func() {
		h.mu.Lock()
		h.waiting--
		h.mu.Unlock()
	}()
	select {
	case <-t.answered:
	case <-h.ended:
		select {
		case <-t.answered: // the result was the last that the program has said
		default:
			t.send(frame{Error: h.why})
		}
	}
}

// enqueue queues a turn, and then tells its relay how many turns are ahead. It returns false if the queue is full.
func (h *host) enqueue(t *turn) bool {
	t.mu.Lock() // until that frame is sent, which is the first one
	defer t.mu.Unlock()
	h.mu.Lock()
	first := h.waiting
	isQueued := false
	select {
	case h.turns <- t:
		isQueued = true
		h.waiting++
	default:
	}
	h.mu.Unlock()
	if isQueued && first > 0 {
		t.sendLocked(frame{Queued: first})
	}
	return isQueued
}

// readRequest reads the message of a relay. The end of the session aborts it.
func (h *host) readRequest(conn net.Conn) (r request, ok bool) {
	read, watched := make(chan struct{}), make(chan struct{})
	defer func() {
		close(read)
		<-watched // a request that was read is answered even if the session has ended
	}()
	h.work.Go(func() {
		defer close(watched)
		select {
		case <-h.ended:
			_ = conn.SetReadDeadline(time.Unix(1, 0))
		case <-read:
		}
	})
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout))
	err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&r)
	return r, err == nil
}

// run gives the message of a turn to the program and waits for the end of the turn.
func (h *host) run(t *turn) {
	if t.isGone() {
		close(t.answered)
		return
	}
	h.mu.Lock()
	h.current = t
	h.view = streamjson.NewTranscript(time.Now)
	h.mu.Unlock()
	if err := h.write(newUserMessage(h.id, t.request.Prompt)); err != nil {
		return // the program has ended or is about to; close answers the relay
	}
	t.send(frame{Accepted: true})
	gone := t.gone
	if !t.request.Await {
		close(t.answered)
		gone = nil
	}
	select {
	case <-t.result:
	case <-h.ended:
		return
	case <-gone:
		h.giveUp(t)
	}
	if t.request.Await {
		close(t.answered)
	}
}

// giveUp interrupts the program and abandons the turn if no result follows within interruptWait.
func (h *host) giveUp(t *turn) {
	h.mu.Lock()
	h.interrupts++
	name := fmt.Sprintf("interrupt-%d", h.interrupts)
	h.mu.Unlock()
	_ = h.write(newInterrupt(name))
	select {
	case <-t.result:
		return
	case <-h.ended:
		return
	case <-time.After(interruptWait):
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == t {
		h.current = nil
		h.owed++
	}
}

// write sends the program a line.
func (h *host) write(line any) error { return json.NewEncoder(h.stdin).Encode(line) }

// onLine handles a line of the program.
func (h *host) onLine(line []byte, cut int64) error {
	parsed := streamjson.ParseLine(line)
	isResult := cut == 0 && parsed != nil && parsed.IsResult() || cut > 0 && streamjson.IsCutResult(line)
	h.mu.Lock()
	t, text := h.current, ""
	if h.owed > 0 {
		// Until its result, the line belongs to an abandoned turn.
		t = nil
		if isResult {
			h.owed--
		}
	} else {
		text = h.view.Add(line, cut)
		if isResult {
			h.current = nil
		}
	}
	h.mu.Unlock()
	if text != "" && h.log != nil {
		_, _ = io.WriteString(h.log, text) // a terminal that is gone does not end the session
	}
	if t == nil {
		return nil
	}
	if t.request.Await {
		said := string(line)
		t.send(frame{Line: &said, Cut: cut})
	}
	if isResult {
		if t.request.Await {
			t.send(frame{Done: true})
		}
		close(t.result)
	}
	return nil
}
