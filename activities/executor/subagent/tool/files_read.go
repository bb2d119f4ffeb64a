package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxSkip bounds how much of a file is read to find a line, in bytes.
const maxSkip = 1 << 30

// readFile implements the tool read_file.
func readFile(ctx context.Context, w *workFiles, call Call) (Outcome, error) {
	var args struct {
		Path   string  `json:"path"`
		Offset float64 `json:"offset"`
		Limit  float64 `json:"limit"`
	}
	if err := parseArguments(call, &args); err != nil {
		return failure("%v", err), nil
	}
	name, err := w.tree.relative(args.Path)
	if err != nil {
		return failure("%v", err), nil
	}
	f, info, err := w.open(name, os.O_RDONLY)
	if err != nil {
		return fileFailure("read", args.Path, err), nil
	}
	defer f.Close()
	r := &lineReader{ctx: ctx, r: bufio.NewReaderSize(f, 64<<10)}
	first := max(int64(args.Offset), 1)
	skipped, err := r.skip(first - 1)
	switch {
	case ctx.Err() != nil:
		return Outcome{}, context.Cause(ctx)
	case err != nil:
		return fileFailure("read", args.Path, err), nil
	case first > 1 && (skipped < first-1 || r.atEnd()):
		return failure("%s has only %d lines; line %d does not exist", args.Path, skipped, first), nil
	}
	text, next, err := r.lines(first, int64(args.Limit))
	switch {
	case err != nil:
		return fileFailure("read", args.Path, err), nil
	case bytes.IndexByte(text, 0) >= 0:
		return failure("%s is not a text file; it has %d bytes; use the shell", args.Path, info.Size()), nil
	case next == 0 && len(text) == 0:
		return Outcome{Text: "(the file is empty)"}, nil
	case next == 0:
		return Outcome{Text: cleanText(string(text))}, nil
	case next < 0:
		return Outcome{Text: cleanText(fmt.Sprintf("%s\n[line %d is longer than %d KiB and was cut; use the shell for the rest]", text, first, maxRead>>10))}, nil
	}
	return Outcome{Text: cleanText(fmt.Sprintf("%s[lines %d to %d of a file of %d bytes; more follows from line %d]", text, first, next-1, info.Size(), next))}, nil
}

// lineReader reads lines of a file.
type lineReader struct {
	ctx context.Context
	r   *bufio.Reader
}

// skip skips n lines and returns how many lines it found.
func (l *lineReader) skip(n int64) (lines int64, err error) {
	partial := false
	for read := 0; lines < n; {
		part, err := l.r.ReadSlice('\n')
		read += len(part)
		switch {
		case l.ctx.Err() != nil:
			return lines, l.ctx.Err()
		case err == nil:
			lines, partial = lines+1, false
		case errors.Is(err, bufio.ErrBufferFull):
			partial = true
		case errors.Is(err, io.EOF):
			if partial || len(part) > 0 {
				lines++
			}
			return lines, nil
		default:
			return lines, err
		}
		if read > maxSkip {
			return lines, fmt.Errorf("the line is beyond the first %d MiB; use the shell", maxSkip>>20)
		}
	}
	return lines, nil
}

// atEnd reports whether the file has no further line.
func (l *lineReader) atEnd() bool {
	_, err := l.r.Peek(1)
	return errors.Is(err, io.EOF)
}

// lines reads whole lines. The current line has the number first. It reads at most limit lines; 0 means no limit. next
// is the number of the following line, 0 if there is none, or -1 if the first line is too long and was cut.
func (l *lineReader) lines(first, limit int64) (text []byte, next int64, err error) {
	for line := first; ; line++ {
		if limit > 0 && line == first+limit {
			if l.atEnd() {
				return text, 0, nil
			}
			return text, line, nil
		}
		start := len(text)
		for whole := false; !whole; {
			part, err := l.r.ReadSlice('\n')
			text = append(text, part...)
			if len(text) > maxRead {
				if line == first {
					return text[:maxRead], -1, nil
				}
				return text[:start], line, nil
			}
			switch {
			case errors.Is(err, io.EOF):
				return text, 0, nil
			case errors.Is(err, bufio.ErrBufferFull):
			case err != nil:
				return nil, 0, err
			default:
				whole = true
			}
		}
	}
}
