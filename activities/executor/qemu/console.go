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
	// consolePoll is how often the file is checked for new output.
	consolePoll = 50 * time.Millisecond
	// consoleBuffer is the size of one read, in bytes.
	consoleBuffer = 64 << 10
	// consoleFull is the notice for a machine that prints too much.
	consoleFull = "the console output reached 64 MiB; further output is discarded"
)

// console forwards the console output of a machine from the start. A serial console ends lines with CR LF; console
// drops the CR.
type console struct {
	path string
	to   io.Writer
	// full is called once when the file reaches its size limit.
	full func()
}

// copy forwards the output until the machine or ctx ends. Its error is that of the writer or of a failed read.
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
			isLast = true // read what was printed before the end once more
		case <-ctx.Done():
		case <-time.After(consolePoll):
		}
	}
}

// open waits until the file exists. It returns nil if the machine or ctx ends before that.
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

// dropCR removes each CR before an LF. The argument held reports whether the previous text ended in a CR, and the
// result held reports whether this one does.
func dropCR(text []byte, held bool) ([]byte, bool) {
	var out []byte
	if held && (len(text) == 0 || text[0] != '\n') {
		out = append(out, '\r')
	}
	text, held = bytes.CutSuffix(text, []byte("\r"))
	return append(out, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))...), held
}
