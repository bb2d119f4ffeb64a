package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/hashicorp/yamux"
)

// CloseWrite sends the empty block that ends what is sent.
func (c *stream) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return nil
	}
	err := c.writeBlock(make([]byte, blockHeader), 0)
	c.ended = true
	return err
}

// Close ends the stream. What was written before still arrives, and io.EOF behind it; a Write that is under way is
// interrupted, and the other side reads a *LostError.
func (c *stream) Close() error {
	if !c.markClosed(net.ErrClosed) {
		return nil
	}
	if !c.writing.TryLock() {
		return c.y.Close()
	}
	defer c.writing.Unlock()
	if c.ended || c.broken {
		return c.y.Close()
	}
	c.ended = true
	rest, err := c.writeEnd(make([]byte, blockHeader), past)
	if errors.Is(err, yamux.ErrTimeout) {
		go c.linger(rest)
		return nil
	}
	return c.y.Close()
}

// markClosed wakes readers and writers, which return err, and reports whether the stream was open.
func (c *stream) markClosed(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return false
	}
	c.closed = err
	c.applyReadTimeout()
	_ = c.y.SetWriteDeadline(past)
	c.session.forget(c)
	if c.onClose != nil {
		c.onClose(c.sent.Load(), c.received.Load())
	}
	return true
}

// OnClose has a function called once when this side closes a stream, with the bytes that it has sent and received. The
// function must not use the stream. It reports whether the connection is a stream that is open.
func OnClose(conn Conn, f func(sent, received int64)) bool {
	c, ok := conn.(*stream)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == nil {
		c.onClose = f
	}
	return c.closed == nil
}

// writeEnd writes a last block until a time, and returns what is left of it.
func (c *stream) writeEnd(block []byte, until time.Time) ([]byte, error) {
	_ = c.y.SetWriteDeadline(until)
	n, err := c.y.Write(block)
	return block[n:], err
}

// linger sends the end once the other side has read enough of what is before it, unless it closes the stream. It ends with
// the session at the latest.
func (c *stream) linger(rest []byte) {
	defer func() { _ = c.y.Close() }()
	for {
		var err error
		if rest, err = c.writeEnd(rest, time.Now().Add(probeInterval)); !errors.Is(err, yamux.ErrTimeout) {
			return
		}
		if c.readEnd != nil { // no reader is left that changes it
			c.mu.Lock()
			gone := c.gone != nil
			c.mu.Unlock()
			if gone {
				return
			}
			continue
		}
		var unread [4 << 10]byte // of no use to a stream that is closed
		if _, err := c.y.Read(unread[:]); err != nil && !errors.Is(err, yamux.ErrTimeout) {
			return
		}
	}
}

// Abort gives the stream up: this side reads a *LostError with the reason, and so does the other side if it can be reached.
func (c *stream) Abort(reason string) {
	err := net.ErrClosed
	if reason != "" {
		err = &LostError{Reason: reason}
	}
	if !c.markClosed(err) {
		return
	}
	defer func() { _ = c.y.Close() }()
	c.writing.Lock() // soon: a write that is under way fails
	defer c.writing.Unlock()
	if c.ended || c.broken || reason == "" {
		return
	}
	c.ended = true
	text := reason[:min(len(reason), maxReason)]
	block := binary.BigEndian.AppendUint32(nil, abortFlag|uint32(len(text)))
	_, _ = c.writeEnd(append(block, text...), past)
}

// LocalAddr returns the address of this side of the connection.
func (c *stream) LocalAddr() net.Addr { return c.y.LocalAddr() }

// RemoteAddr returns the address of the other side of the connection.
func (c *stream) RemoteAddr() net.Addr { return c.y.RemoteAddr() }

// SetDeadline sets both deadlines.
func (c *stream) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline of reads, those that wait included.
func (c *stream) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readTimeout = t
	c.applyReadTimeout()
	return nil
}

// SetWriteDeadline sets the deadline of writes, those that wait included. A stream of which a Write was interrupted takes no
// others.
func (c *stream) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeTimeout = t
	if c.gone == nil && c.closed == nil {
		_ = c.y.SetWriteDeadline(t)
	}
	return nil
}

// WriteTo copies to w until the end, and needs no buffer while it waits.
func (c *stream) WriteTo(w io.Writer) (total int64, err error) {
	for {
		n, err := c.copyBlock(w)
		total += int64(n)
		var write *writeError
		switch {
		case errors.As(err, &write):
			return total, err
		case errors.Is(err, io.EOF):
			return total, nil
		case err != nil:
			return total, err
		}
	}
}

// copyBlock copies a block or a part of one.
func (c *stream) copyBlock(w io.Writer) (int, error) {
	c.reading.Lock()
	if err := c.nextBlock(); err != nil {
		c.reading.Unlock()
		return 0, err
	}
	block := blocks.Get().(*[blockHeader + maxBlock]byte)
	defer blocks.Put(block)
	n, err := c.readRaw(block[blockHeader : blockHeader+min(c.left, maxBlock)])
	c.left -= n
	c.received.Add(int64(n))
	c.reading.Unlock()
	if err != nil {
		return 0, err
	}
	n, err = writeFilled(w, block[:blockHeader+n])
	if err != nil {
		return n, &writeError{err}
	}
	return n, nil
}

// writeError is an error of the writer that WriteTo copies to.
type writeError struct{ error }

// Unwrap returns the writer's error.
func (e *writeError) Unwrap() error { return e.error }
