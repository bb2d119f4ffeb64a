package wire

import (
	"errors"
	"io"
	"net"
	"sync"
)

// Join copies between two connections in both directions until both directions have ended, closes the connections, and
// returns the number of bytes copied in each direction. The end of one direction leaves the other one open. If one connection
// fails or is aborted, Join aborts the other one with the same reason.
func Join(a, b Conn) (aToB, bToA int64) {
	var directions sync.WaitGroup
	directions.Go(func() { aToB = copyHalf(b, a) })
	directions.Go(func() { bToA = copyHalf(a, b) })
	directions.Wait()
	_, _ = a.Close(), b.Close()
	return aToB, bToA
}

// copyHalf copies one direction until its end and returns the number of bytes copied.
func copyHalf(to, from Conn) int64 {
	n, err := copyAll(to, from)
	var write *writeError
	switch {
	case errors.As(err, &write):
		// Do not abort: what the other side sent before it left is still being copied, and its end ends that direction.
	case err != nil:
		reason := err.Error()
		Abort(to, reason)
		Abort(from, reason)
	default:
		_ = to.CloseWrite() // an error also shows in the other direction
	}
	return n
}

// copyAll copies until the end of from. An error of to is a *writeError.
func copyAll(to, from Conn) (total int64, err error) {
	if s, ok := from.(*stream); ok {
		return s.WriteTo(to)
	}
	buffer := blocks.Get().(*[blockHeader + maxBlock]byte)
	defer blocks.Put(buffer)
	for {
		n, err := from.Read(buffer[blockHeader:])
		if n > 0 {
			m, err := writeFilled(to, buffer[:blockHeader+n])
			if total += int64(m); err != nil {
				return total, &writeError{err}
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// writeFilled writes the data of a block with room for its header. It writes to a stream without copying.
func writeFilled(to io.Writer, block []byte) (int, error) {
	s, ok := to.(*stream)
	if !ok {
		return to.Write(block[blockHeader:])
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	n := len(block) - blockHeader
	if err := s.writeBlock(block, uint32(n)); err != nil {
		return 0, err
	}
	return n, nil
}

// Abort closes a connection immediately. The other side of a stream reads a *LostError with the reason, if there is one; the
// other side of a TCP connection gets a reset.
func Abort(c Conn, reason string) {
	switch c := c.(type) {
	case interface{ Abort(reason string) }:
		c.Abort(reason)
		return
	case *net.TCPConn:
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}
