package scriptedmodel

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// delivery sends the response to one request and records its outcome.
type delivery struct {
	w       http.ResponseWriter
	ctx     context.Context // ends when the client disconnects
	dialect dialect
	pace    Pace
	record  func(status int, outcome Outcome)
}

// send sends a reply with a fault. The zero fault sends a complete reply.
func (d *delivery) send(reply turn, fault Fault, isStream bool) {
	switch {
	case !d.pause(d.pace.Delay):
		d.record(0, OutcomeAbandoned)
	case fault.Status != 0:
		d.refuse(fault.Status, refusal(fault.Status), fault.RetryAfter)
	case isStream:
		d.stream(d.dialect.stream(reply), fault)
	default:
		d.message(d.dialect.message(reply), fault)
	}
}

// refusal returns the message of a refusal.
func refusal(status int) string {
	text := http.StatusText(status)
	if status == (anthropic{}).overloaded() {
		text = "Overloaded"
	}
	return fmt.Sprintf("%s (the script says so)", text)
}

// refuse sends an error response.
func (d *delivery) refuse(status int, message string, retryAfter time.Duration) {
	header := d.w.Header()
	header.Set("Content-Type", "application/json")
	if retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(retryAfter.Seconds()))))
		header.Set("Retry-After-Ms", strconv.FormatInt(max(1, retryAfter.Milliseconds()), 10)) // clients prefer this header
	}
	d.record(status, OutcomeRefused)
	d.w.WriteHeader(status)
	d.write(d.dialect.failure(status, message))
}

// stream sends the events of a reply, up to the break of a fault if it has one.
func (d *delivery) stream(events []event, fault Fault) {
	d.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	d.w.Header().Set("Cache-Control", "no-cache")
	d.w.WriteHeader(http.StatusOK)
	d.record(http.StatusOK, OutcomeOpen)
	breakAt := breakPosition(events, fault)
	var last event // the last chunk
	for i, e := range events {
		delay := time.Duration(0)
		if e.isChunk && last.isChunk {
			delay = d.pace.ChunkDelay
		}
		if !d.pause(delay) {
			d.abandon(breakAt >= 0 && i > breakAt)
			return
		}
		if i == breakAt {
			d.record(http.StatusOK, OutcomeBroken)
			if fault.Break != BreakMalformed {
				d.breakStream(fault.Break, e, last)
				return
			}
			e.data = e.data[:len(e.data)/2]
		}
		if i == len(events)-1 && breakAt < 0 {
			d.record(http.StatusOK, OutcomeDelivered)
		}
		if !d.write(e.text()) {
			d.abandon(breakAt >= 0 && i >= breakAt)
			return
		}
		if e.isChunk {
			last = e
		}
	}
}

// abandon records that the client has disconnected, unless the reply was broken before.
func (d *delivery) abandon(isBroken bool) {
	if !isBroken {
		d.record(http.StatusOK, OutcomeAbandoned)
	}
}

// breakPosition returns the index of the event at which a stream breaks, or -1. The index is at most one after the last
// chunk, so that no client gets the end of a broken reply.
func breakPosition(events []event, fault Fault) int {
	if fault.Break == "" {
		return -1
	}
	sent, position := 0, 0
	for i, e := range events {
		switch {
		case e.isChunk && sent == fault.After:
			return i
		case e.isChunk:
			sent++
			position = i + 1
		}
	}
	return position
}

// breakStream breaks a stream before the event next. last is the last chunk.
func (d *delivery) breakStream(way Break, next, last event) {
	switch way {
	case BreakCut:
		panic(http.ErrAbortHandler)
	case BreakError:
		d.write(d.dialect.failureEvent().text())
	case BreakStall:
		<-d.ctx.Done()
	case BreakEndless:
		if !next.isChunk {
			next = last
		}
		for d.write(next.text()) && d.pause(d.pace.ChunkDelay) {
		}
	case BreakTruncate, BreakMalformed:
	}
}

// message sends the body of a reply without streaming.
func (d *delivery) message(body []byte, fault Fault) {
	d.w.Header().Set("Content-Type", "application/json")
	if fault.Break == BreakError {
		status := d.dialect.overloaded()
		d.refuse(status, refusal(status), 0)
		return
	}
	if fault.Break == "" {
		d.record(http.StatusOK, OutcomeDelivered)
		if !d.write(body) {
			d.record(http.StatusOK, OutcomeAbandoned)
		}
		return
	}
	d.record(http.StatusOK, OutcomeBroken)
	switch fault.Break {
	case BreakCut:
		d.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		d.write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case BreakStall:
		d.write(nil)
		<-d.ctx.Done()
	case BreakEndless:
		for d.write([]byte(" ")) && d.pause(d.pace.ChunkDelay) {
		}
	case BreakTruncate, BreakMalformed, BreakError:
		d.write(body[:len(body)/2])
	}
}

// write sends bytes immediately, and reports whether that succeeded. It ignores the context, because a client that
// disconnects after the last byte has the complete reply.
func (d *delivery) write(text []byte) bool {
	if _, err := d.w.Write(text); err != nil {
		return false
	}
	return http.NewResponseController(d.w).Flush() == nil
}

// pause waits, and reports whether the client is still connected.
func (d *delivery) pause(delay time.Duration) bool {
	if delay == 0 {
		return d.ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.ctx.Done():
		return false
	}
}

// text returns the wire format of an event.
func (e event) text() []byte {
	var text bytes.Buffer
	if e.name != "" {
		fmt.Fprintf(&text, "event: %s\n", e.name)
	}
	fmt.Fprintf(&text, "data: %s\n\n", e.data)
	return text.Bytes()
}
