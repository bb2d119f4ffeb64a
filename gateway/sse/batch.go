package sse

import "switchyard/gateway/eventstream"

// maxWrite is how many bytes of events are gathered for one write.
const maxWrite = 64 << 10

// batch gathers events for a stream.
type batch struct {
	stream *eventstream.Stream
	text   []byte
}

// add adds an event, and sends what has been gathered if that is much.
func (b *batch) add(frame []byte) error {
	b.text = append(b.text, frame...)
	if len(b.text) < maxWrite {
		return nil
	}
	return b.flush()
}

// flush sends what has been gathered.
func (b *batch) flush() error {
	if len(b.text) == 0 {
		return nil
	}
	text := b.text
	b.text = b.text[:0]
	return b.stream.Write(text)
}
