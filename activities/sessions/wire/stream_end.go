package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/hashicorp/yamux"
)

// CloseWrite sends the empty block that ends the data of this side.
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

// Close closes the stream. Data that was already written still arrives, followed by io.EOF. If a Write is in progress, Close
// interrupts it, and the other side reads a *LostError.
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

// markClosed makes all reads and writes return err and reports whether the stream was open.
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

// OnClose registers a function that is called once, when this side closes the stream, with the number of bytes sent and
// received. The function must not use the stream. OnClose reports whether the connection is an open stream.
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

// writeEnd writes the final block until a deadline and returns the unwritten rest.
func (c *stream) writeEnd(block []byte, until time.Time) ([]byte, error) {
	_ = c.y.SetWriteDeadline(until)
	n, err := c.y.Write(block)
	return block[n:], err
}

// linger sends the rest of the final block once the other side has read enough of the data before it, unless the other side
// closes the stream. It returns when the session ends, at the latest.
func (c *stream) linger(rest []byte) {
	defer func() { _ = c.y.Close() }()
	for {
		var err error
		if rest, err = c.writeEnd(rest, time.Now().Add(c.session.probe)); !errors.Is(err, yamux.ErrTimeout) {
			return
		}
		if c.readEnd != nil { // no lock needed: no reader is left to change it
			c.mu.Lock()
			gone := c.gone != nil
			c.mu.Unlock()
			if gone {
				return
			}
			continue
		}
		var unread [4 << 10]byte // discarded: the stream is closed
		if _, err := c.y.Read(unread[:]); err != nil && !errors.Is(err, yamux.ErrTimeout) {
			return
		}
	}
}

// Abort closes the stream immediately. This side reads a *LostError with the reason, and so does the other side if it can be
// reached.
func (c *stream) Abort(reason string) {
	err := net.ErrClosed
	if reason != "" {
		err = &LostError{Reason: reason}
	}
	if !c.markClosed(err) {
		return
	}
	defer func() { _ = c.y.Close() }()
	c.writing.Lock() // soon available: a write in progress fails
	defer c.writing.Unlock()
	if c.ended || c.broken || reason == "" {
		return
	}
	c.ended = true
	text := reason[:min(len(reason), maxReason)]
	block := binary.BigEndian.AppendUint32(nil, abortFlag|uint32(len(text)))
	_, _ = c.writeEnd(append(block, text...), past)
}

// LocalAddr returns the local address of the connection.
func (c *stream) LocalAddr() net.Addr { return c.y.LocalAddr() }

// RemoteAddr returns the remote address of the connection.
func (c *stream) RemoteAddr() net.Addr { return c.y.RemoteAddr() }

// SetDeadline sets the read and the write deadline.
func (c *stream) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline for reads, including those in progress.
func (c *stream) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readTimeout = t
	c.applyReadTimeout()
	return nil
}

// SetWriteDeadline sets the deadline for writes, including those in progress. A stream cannot be written to after a Write
// was interrupted within a block.
func (c *stream) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeTimeout = t
	if c.gone == nil && c.closed == nil {
		_ = c.y.SetWriteDeadline(t)
	}
	return nil
}

// WriteTo copies to w until the end of the data. It holds no buffer while it waits.
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

// copyBlock copies one block or a part of one.
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
