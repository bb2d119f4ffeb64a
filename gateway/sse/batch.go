package sse

import "switchyard/gateway/eventstream"

// maxWrite is the number of bytes that are gathered for one write.
const maxWrite = 64 << 10

// batch buffers events for a stream.
type batch struct {
	stream *eventstream.Stream
	text   []byte
}

// add buffers an event, and flushes a full buffer.
func (b *batch) add(frame []byte) error {
	b.text = append(b.text, frame...)
	if len(b.text) < maxWrite {
		return nil
	}
	return b.flush()
}

// flush writes the buffered events.
func (b *batch) flush() error {
	if len(b.text) == 0 {
		return nil
	}
	text := b.text
	b.text = b.text[:0]
	return b.stream.Write(text)
}
