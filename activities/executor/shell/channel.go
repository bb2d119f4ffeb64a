//go:build unix

package shell

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// channel is one stream of a row of programs: a pipe that stays open, from which a
// goroutine reads. What is in it when nothing of a program is left was printed by that
// program, so that no end of the pipe is needed to tell where its output ends.
type channel struct {
	read, write *os.File
	raw         syscall.RawConn
	buffers     *sync.Pool
	gone        chan struct{} // closed when the goroutine has ended

	// mu is held by whoever reads, and from take to begin so that nobody does.
	mu    sync.Mutex
	taken bool
	to    io.Writer
	err   error
}

func newChannel(buffers *sync.Pool) (*channel, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	raw, err := read.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	c := &channel{read: read, write: write, raw: raw, buffers: buffers, gone: make(chan struct{}), to: io.Discard}
	go func() {
		defer close(c.gone)
		_ = c.raw.Read(func(fd uintptr) bool { // ends when the pipe is closed
			for {
				c.mu.Lock()
				n, end := c.next(int(fd))
				c.mu.Unlock()
				if end || n == 0 {
					return end
				}
			}
		})
	}()
	return c, nil
}

// next passes on what one read gives. It is 0 when nothing is there for now. mu is held.
func (c *channel) next(fd int) (n int, end bool) {
	buffer := c.buffers.Get().(*chunk)
	defer c.buffers.Put(buffer)
	for {
		var err error
		n, err = syscall.Read(fd, buffer[:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, false
		case err != nil || n == 0:
			return 0, true
		}
		break
	}
	if c.err == nil {
		// As in stream.copy, the program goes on.
		_, c.err = c.to.Write(buffer[:n])
	}
	return n, false
}

// take says where the output of the next program goes, and holds it back until begin.
func (c *channel) take(to io.Writer) {
	c.mu.Lock()
	c.taken, c.to, c.err = true, to, nil
	if to == nil {
		c.to = io.Discard
	}
}

func (c *channel) begin() {
	c.taken = false
	c.mu.Unlock()
}

// finish passes on what is left in the pipe.
func (c *channel) finish() error {
	if !c.taken {
		c.mu.Lock()
	}
	c.taken = false
	defer c.mu.Unlock()
	left := leakBytes // more was written by somebody who has got hold of the pipe
	_ = c.raw.Control(func(fd uintptr) {
		for left > 0 {
			n, _ := c.next(int(fd))
			if n == 0 {
				return
			}
			left -= n
		}
	})
	err := c.err
	c.to, c.err = io.Discard, nil
	return err
}

// close ends the goroutine. No program is running.
func (c *channel) close() {
	c.write.Close()
	c.read.Close()
	<-c.gone
}

// channels are the two streams of a row.
type channels struct{ out, errs *channel }

var _ pipes = (*channels)(nil)

func newChannels(buffers *sync.Pool) (*channels, error) {
	out, err := newChannel(buffers)
	if err != nil {
		return nil, err
	}
	errs, err := newChannel(buffers)
	if err != nil {
		out.close()
		return nil, err
	}
	return &channels{out, errs}, nil
}

// take begins with the next program, which finish ends.
func (c *channels) take(out, errs io.Writer) {
	c.out.take(out)
	c.errs.take(errs)
}

func (c *channels) files() (out, errs *os.File) { return c.out.write, c.errs.write }
func (c *channels) forked()                     {}

func (c *channels) begin() {
	c.out.begin()
	c.errs.begin()
}

func (c *channels) finish() error {
	out, errs := c.out.finish(), c.errs.finish()
	return errors.Join(named("standard output", out), named("standard error", errs))
}

func (c *channels) close() {
	c.out.close()
	c.errs.close()
}
