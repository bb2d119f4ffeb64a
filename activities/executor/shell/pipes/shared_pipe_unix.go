//go:build unix

package pipes

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// sharedPipe is one stream of a batch of programs: a pipe that stays open and that a goroutine
// reads from. Once nothing of a program is left, everything in the pipe was printed by that
// program, so the end of its output is known without closing the pipe.
type sharedPipe struct {
	read, write *os.File
	raw         syscall.RawConn
	buffers     *sync.Pool
	ended       chan struct{} // closed when the goroutine has ended

	// mu is held for each read, and from assign to begin to prevent reads.
	mu       sync.Mutex
	assigned bool
	to       io.Writer
	err      error
}

func newSharedPipe(buffers *sync.Pool) (*sharedPipe, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	raw, err := read.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	c := &sharedPipe{read: read, write: write, raw: raw, buffers: buffers, ended: make(chan struct{}), to: io.Discard}
	go func() {
		defer close(c.ended)
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

// next forwards the output of one read. n is 0 if there is nothing to read now. The caller holds
// mu.
func (c *sharedPipe) next(fd int) (n int, end bool) {
	buffer := c.buffers.Get().(*Chunk)
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
		// As in stream.writeOut, the program continues despite the error.
		_, c.err = c.to.Write(buffer[:n])
	}
	return n, false
}

// assign sets the destination of the next program's output, and holds the output back until begin.
func (c *sharedPipe) assign(to io.Writer) {
	c.mu.Lock()
	c.assigned, c.to, c.err = true, to, nil
	if to == nil {
		c.to = io.Discard
	}
}

func (c *sharedPipe) begin() {
	c.assigned = false
	c.mu.Unlock()
}

// finish forwards what is left in the pipe.
func (c *sharedPipe) finish() error {
	if !c.assigned {
		c.mu.Lock()
	}
	c.assigned = false
	defer c.mu.Unlock()
	left := leakBytes // another process that holds the pipe wrote anything beyond that
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

// close ends the goroutine. No program may be running.
func (c *sharedPipe) close() {
	c.write.Close()
	c.read.Close()
	<-c.ended
}

// Shared holds the two pipes that the programs of a batch write to, one after the other.
type Shared struct{ out, errs *sharedPipe }

var _ Pipes = (*Shared)(nil)

// NewShared returns the pipes of a batch. buffers is a pool of *Chunk.
func NewShared(buffers *sync.Pool) (*Shared, error) {
	out, err := newSharedPipe(buffers)
	if err != nil {
		return nil, err
	}
	errs, err := newSharedPipe(buffers)
	if err != nil {
		out.close()
		return nil, err
	}
	return &Shared{out, errs}, nil
}

// Assign sets the destinations of the next program's output, until Finish.
func (c *Shared) Assign(out, errs io.Writer) {
	c.out.assign(out)
	c.errs.assign(errs)
}

// Files returns the files that the programs write to.
func (c *Shared) Files() (out, errs *os.File) { return c.out.write, c.errs.write }

// Forked does nothing: the pipes stay open for the next program.
func (c *Shared) Forked() {}

// Begin starts to copy the output.
func (c *Shared) Begin() {
	c.out.begin()
	c.errs.begin()
}

// Finish copies the remaining output of the program and returns the errors of the writers.
func (c *Shared) Finish() error {
	out, errs := c.out.finish(), c.errs.finish()
	return errors.Join(writeError("standard output", out), writeError("standard error", errs))
}

// Close closes the pipes. No program may be running.
func (c *Shared) Close() {
	c.out.close()
	c.errs.close()
}
