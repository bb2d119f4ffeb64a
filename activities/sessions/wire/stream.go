package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// Conn is a stream or a TCP connection.
type Conn interface {
	net.Conn
	// CloseWrite ends the sent data. The other side reads io.EOF after it, and may continue to send.
	CloseWrite() error
}

// LostError means that a stream did not end regularly: its connection was lost, or the other side has aborted it. It
// matches ErrLost in errors.Is.
type LostError struct {
	// Reason is a text for people.
	Reason string
}

// ErrLost matches every LostError.
var ErrLost = errors.New("the connection was lost")

// Error returns the reason.
func (e *LostError) Error() string { return e.Reason }

// Is reports whether the target is ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

const (
	// maxBlock is the maximum amount of data in a block, in bytes.
	maxBlock = 64 << 10
	// blockHeader is the size of the length that precedes a block.
	blockHeader = 4
	// abortFlag marks a block that contains the reason of an abort.
	abortFlag = 1 << 31
	// maxReason is the maximum length of a reason, in bytes.
	maxReason = 1 << 10
	// goneText is the error text if the other side has closed a stream that this side still uses.
	goneText = "the other side has closed the stream"
)

// stream is a Conn within a session.
type stream struct {
	session    *Session
	y          *yamux.Stream
	bytesRead  atomic.Int64
	readBefore int64 // protected by the session's mutex
	// sent and received count the data without block headers.
	sent, received atomic.Int64

	reading sync.Mutex // held by Read
	header  [blockHeader]byte
	got     int // bytes of the header read so far
	left    int // bytes of the block not yet read

	writing sync.Mutex // held by Write
	ended   bool       // no more data may be written
	broken  bool       // a block was written incompletely

	mu           sync.Mutex
	closed       error // error for calls after this side has closed the stream
	readEnd      error // error for further reads
	gone         error // error for further writes, because the other side neither sends nor reads
	probing      bool
	readTimeout  time.Time
	writeTimeout time.Time
	onClose      func(sent, received int64)
}

// Read reads at most to the end of the current block.
func (c *stream) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if err := c.nextBlock(); err != nil {
		return 0, err
	}
	n, err := c.readRaw(p[:min(len(p), c.left)])
	c.left -= n
	c.received.Add(int64(n))
	return n, err
}

// nextBlock reads block headers until data of a block follows.
func (c *stream) nextBlock() error {
	for c.left == 0 {
		if err := c.endOfReads(); err != nil {
			return err
		}
		n, err := c.readRaw(c.header[c.got:])
		if c.got += n; err != nil {
			return err
		}
		if c.got < blockHeader {
			continue
		}
		c.got = 0
		size := binary.BigEndian.Uint32(c.header[:])
		switch {
		case size == 0:
			c.endReads(io.EOF)
			go c.awaitEnd()
			return io.EOF
		case size&abortFlag != 0:
			return c.readReason(int(size &^ abortFlag))
		case size > maxBlock:
			c.Abort("")
			return c.lose("malformed session stream: a block is too large")
		}
		c.left = int(size)
	}
	return nil
}

// readRaw reads from the underlying yamux stream.
func (c *stream) readRaw(p []byte) (int, error) {
	n, err := c.y.Read(p)
	c.bytesRead.Add(int64(n))
	if err == nil {
		return n, nil
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	switch {
	case closed != nil:
		return n, closed
	case errors.Is(err, yamux.ErrTimeout):
		return n, os.ErrDeadlineExceeded
	case errors.Is(err, io.EOF) && !c.session.mux.IsClosed():
		return n, c.lose(goneText)
	}
	return n, c.lose(c.session.failure(err).Error())
}

// readReason reads the reason with which the other side has aborted the stream.
func (c *stream) readReason(size int) error {
	reason := make([]byte, min(size, maxReason))
	for n := 0; n < len(reason); {
		m, err := c.readRaw(reason[n:])
		if err != nil {
			return err
		}
		n += m
	}
	return c.lose(string(reason))
}

// lose makes reads and writes fail with a *LostError, which it returns.
func (c *stream) lose(reason string) error {
	if reason == "" {
		reason = goneText
	}
	err := &LostError{Reason: reason}
	c.endReads(err)
	c.endWrites(err)
	return err
}

func (c *stream) endOfReads() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return c.closed
	}
	return c.readEnd
}

// endReads makes further reads fail with err, which may be io.EOF.
func (c *stream) endReads(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readEnd == nil {
		c.readEnd = err
		c.applyReadTimeout()
	}
}

// endWrites makes writes fail with err, including a write that is blocked.
func (c *stream) endWrites(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = err
		_ = c.y.SetWriteDeadline(past)
	}
}

// awaitEnd waits until the other side, which has ended its data, also stops reading. It returns when the session ends, at
// the latest.
func (c *stream) awaitEnd() {
	var b [64]byte
	_, err := c.y.Read(b[:])
	reason := goneText
	if err == nil {
		reason = "the other side has sent data after the end"
	}
	c.endWrites(&LostError{Reason: reason})
}

// Write sends p in blocks.
func (c *stream) Write(p []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	block := blocks.Get().(*[blockHeader + maxBlock]byte)
	defer blocks.Put(block)
	for written < len(p) {
		n := copy(block[blockHeader:], p[written:])
		if err := c.writeBlock(block[:blockHeader+n], uint32(n)); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// blocks is a pool of buffers for one block with its header.
var blocks = sync.Pool{New: func() any { return new([blockHeader + maxBlock]byte) }}

// writeBlock fills in the header of a block and sends the block. The caller holds c.writing.
func (c *stream) writeBlock(block []byte, size uint32) error {
	switch {
	case c.ended:
		return io.ErrClosedPipe
	case c.broken:
		return &LostError{Reason: "an earlier write was interrupted"}
	}
	binary.BigEndian.PutUint32(block, size)
	for rest := block; ; {
		limit, err := c.limitOfWrites()
		if err != nil {
			c.broken = true
			return err
		}
		probe := time.Now().Add(c.session.probe)
		if !limit.IsZero() && limit.Before(probe) {
			probe = limit
		}
		_ = c.y.SetWriteDeadline(probe)
		n, err := c.y.Write(rest)
		rest = rest[n:]
		switch {
		case err == nil:
			c.sent.Add(int64(size))
			return nil
		case !errors.Is(err, yamux.ErrTimeout):
			c.broken = true
			return c.writeFailure(err)
		case !limit.IsZero() && !time.Now().Before(limit):
			c.broken = len(rest) < len(block)
			return os.ErrDeadlineExceeded
		}
		c.probe()
	}
}

// limitOfWrites returns the write deadline, or the error for further writes.
func (c *stream) limitOfWrites() (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return time.Time{}, c.closed
	}
	return c.writeTimeout, c.gone
}

func (c *stream) writeFailure(err error) error {
	if _, lost := c.limitOfWrites(); lost != nil {
		return lost
	}
	return c.session.failure(err)
}

// probe checks whether the other side has closed the stream, unless a reader would notice that.
func (c *stream) probe() {
	if !c.reading.TryLock() {
		return
	}
	defer c.reading.Unlock()
	if c.endOfReads() != nil {
		return
	}
	c.setProbing(true)
	_, err := c.y.Read(nil) // consumes nothing
	c.setProbing(false)
	if err != nil && !errors.Is(err, yamux.ErrTimeout) {
		c.endWrites(&LostError{Reason: goneText})
	}
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// setProbing controls whether reads return immediately, as the read of probe must.
func (c *stream) setProbing(probing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = probing
	c.applyReadTimeout()
}

// applyReadTimeout sets the read deadline of the yamux stream. The caller holds c.mu.
func (c *stream) applyReadTimeout() {
	switch {
	case c.readEnd != nil: // awaitEnd reads without a deadline
		_ = c.y.SetReadDeadline(time.Time{})
	case c.probing || c.closed != nil:
		_ = c.y.SetReadDeadline(past)
	default:
		_ = c.y.SetReadDeadline(c.readTimeout)
	}
}
