package pipes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Dedicated holds the two pipes of an attempt that runs alone.
type Dedicated struct {
	out, errs *stream
	copies    sync.WaitGroup
}

var _ Pipes = (*Dedicated)(nil)

// NewDedicated returns pipes that copy to out and errs; either may be nil. buffers is a pool of
// *Chunk.
func NewDedicated(out, errs io.Writer, buffers *sync.Pool) (*Dedicated, error) {
	o, err := newStream(out, buffers)
	if err != nil {
		return nil, err
	}
	e, err := newStream(errs, buffers)
	if err != nil {
		return nil, errors.Join(err, o.write.Close(), o.read.Close())
	}
	e.before = o
	return &Dedicated{out: o, errs: e}, nil
}

// Adopt returns pipes that continue to copy the output of a program that another process has started. outRead and errRead are the ends
// that Leave has returned there.
func Adopt(outRead, errRead *os.File, out, errs io.Writer, buffers *sync.Pool) *Dedicated {
	o, e := adoptStream(outRead, out, buffers), adoptStream(errRead, errs, buffers)
	e.before = o
	return &Dedicated{out: o, errs: e}
}

// Leave ends the copying early. It returns the ends that the rest of the output can be read from, once everything that was read has
// been written.
func (p *Dedicated) Leave() (out, errs *os.File) {
	p.out.leave()
	p.errs.leave()
	p.copies.Wait()
	return p.out.read, p.errs.read
}

// Files returns the files that the program writes to.
func (p *Dedicated) Files() (out, errs *os.File) { return p.out.write, p.errs.write }

// Forked closes this process's write ends, so that the pipes end with the program.
func (p *Dedicated) Forked() {
	p.out.write.Close()
	p.errs.write.Close()
}

// Begin starts to copy the output.
func (p *Dedicated) Begin() {
	p.copies.Go(p.out.copy)
	p.copies.Go(p.errs.copy)
}

// Finish copies the remaining output and returns the errors of the writers.
func (p *Dedicated) Finish() error {
	p.out.finish()
	p.errs.finish()
	p.copies.Wait()
	p.out.read.Close()
	p.errs.read.Close()
	return errors.Join(writeError("standard output", p.out.err), writeError("standard error", p.errs.err))
}

func writeError(stream string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", stream, err)
}
