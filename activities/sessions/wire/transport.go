package wire

import (
	"encoding/binary"
	"net"
	"time"
)

// times holds the time limits of a connection.
type times struct {
	// ping is the interval of a side's pings. Proxies often cut a connection that was silent for a minute, some after 30 s.
	ping time.Duration
	// silence is how long a connection may receive nothing, not even pings.
	silence time.Duration
	// write bounds one write to the connection, and how long a stream waits to write.
	write time.Duration
	// probe is how long a stream waits to write before it checks whether the other side is still there.
	probe time.Duration
}

// usualTimes are the limits outside of tests.
var usualTimes = times{ping: 15 * time.Second, silence: 45 * time.Second, write: 30 * time.Second, probe: 2 * time.Second}

const (
	// frameHeader is the size of the header of a yamux frame. The second byte of the header is the type, and the last four bytes
	// are the length.
	frameHeader = 12
	frameData   = 0
)

// transport is the connection below a session. It fails when it is stuck, and sends the header of a frame together with the data.
// yamux writes to it from one goroutine, and reads from another.
type transport struct {
	net.Conn
	write, read time.Duration
	held        []byte // a header whose data follows
}

// Read returns an error if nothing arrives for too long.
func (t *transport) Read(p []byte) (int, error) {
	if err := t.SetReadDeadline(time.Now().Add(t.read)); err != nil {
		return 0, err
	}
	return t.Conn.Read(p)
}

// Write returns an error if it takes too long. It holds a frame header until the data follows.
func (t *transport) Write(p []byte) (int, error) {
	if len(t.held) == 0 && len(p) == frameHeader && p[1] == frameData && binary.BigEndian.Uint32(p[8:]) > 0 {
		t.held = append(t.held, p...)
		return len(p), nil
	}
	if err := t.SetWriteDeadline(time.Now().Add(t.write)); err != nil {
		return 0, err
	}
	if len(t.held) == 0 {
		return t.Conn.Write(p)
	}
	t.held = append(t.held, p...)
	_, err := t.Conn.Write(t.held)
	if t.held = t.held[:0]; cap(t.held) > 2*maxBlock {
		t.held = nil
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}
