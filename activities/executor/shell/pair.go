package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// pair is the two pipes of an attempt that runs by itself.
type pair struct {
	out, errs *stream
	copies    sync.WaitGroup
}

var _ pipes = (*pair)(nil)

func newPair(out, errs io.Writer, buffers *sync.Pool) (*pair, error) {
	o, err := newStream(out, buffers)
	if err != nil {
		return nil, err
	}
	e, err := newStream(errs, buffers)
	if err != nil {
		return nil, errors.Join(err, o.write.Close(), o.read.Close())
	}
	e.first = o
	return &pair{out: o, errs: e}, nil
}

func (p *pair) files() (out, errs *os.File) { return p.out.write, p.errs.write }

// forked leaves the pipes to the program, so that they end with it.
func (p *pair) forked() {
	p.out.write.Close()
	p.errs.write.Close()
}

func (p *pair) begin() {
	p.copies.Go(p.out.copy)
	p.copies.Go(p.errs.copy)
}

func (p *pair) finish() error {
	p.out.finish()
	p.errs.finish()
	p.copies.Wait()
	p.out.read.Close()
	p.errs.read.Close()
	return errors.Join(named("standard output", p.out.err), named("standard error", p.errs.err))
}

func named(stream string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", stream, err)
}
