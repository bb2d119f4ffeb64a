package qemu

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

const (
	// consolePoll is how often the file is looked at for more.
	consolePoll = 50 * time.Millisecond
	// consoleBuffer is how much is passed on at once, in bytes.
	consoleBuffer = 64 << 10
	// consoleFull is told of a machine that prints too much.
	consoleFull = "the machine has printed 64 MiB on its console; what it prints from now on is not in the log"
)

// console passes on what a machine prints, from the start. Lines of a serial console end in CR LF; the CR is left out.
type console struct {
	path string
	to   io.Writer
	// full is called once if the file has its largest size.
	full func()
}

// copy passes on all that is printed until the machine has ended, or ctx has. Its error is that of the writer.
func (c *console) copy(ctx context.Context, ended <-chan struct{}) error {
	file, err := c.open(ctx, ended)
	if err != nil || file == nil {
		return err
	}
	defer file.Close()
	var fail error
	var total int64
	buffer := make([]byte, consoleBuffer)
	heldCR := false
	for isLast := false; ; {
		n, err := file.Read(buffer)
		if total += int64(n); n > 0 {
			var text []byte
			text, heldCR = dropCR(buffer[:n], heldCR)
			if len(text) > 0 && fail == nil {
				_, fail = c.to.Write(text)
			}
			if total == maxConsole {
				c.full()
			}
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			return errors.Join(fail, err)
		case isLast || ctx.Err() != nil:
			return fail
		}
		select {
		case <-ended:
			isLast = true // what was printed before that is read once more
		case <-ctx.Done():
		case <-time.After(consolePoll):
		}
	}
}

// open waits until the file is there. It returns nil if there is none in the end.
func (c *console) open(ctx context.Context, ended <-chan struct{}) (*os.File, error) {
	for {
		file, err := os.Open(c.path)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
		select {
		case <-ended:
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		case <-time.After(consolePoll):
		}
	}
}

// dropCR returns a text without each CR that is before an LF. held reports whether the text before ended in a CR, and then whether this
// one does.
func dropCR(text []byte, held bool) ([]byte, bool) {
	var out []byte
	if held && (len(text) == 0 || text[0] != '\n') {
		out = append(out, '\r')
	}
	text, held = bytes.CutSuffix(text, []byte("\r"))
	return append(out, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))...), held
}
