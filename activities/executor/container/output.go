package container

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor"
)

// output forwards what a container prints, each byte once. The output arrives over a
// stream from the engine, and a slow writer slows the container down. After an absence
// of the engine, output continues from what the engine has retained since the stream was
// interrupted.
type output struct {
	r *running
	// streams are standard output and standard error, which the engine numbers from 1.
	streams [2]stream
	// attached is the stream from the engine, or nil if the container was not attached
	// to.
	attached *attached
	// since is the time from which passed counts bytes.
	since  time.Time
	passed [2]int64
	// err joins the errors of the writers.
	err    error
	buffer []byte
}

type stream struct {
	to   io.Writer
	fail error
	// head holds the first bytes, at most maxHead.
	head []byte
}

// maxHead is more than the message of an engine that cannot execute a program, in bytes.
const maxHead = 300

type attached struct {
	io.Closer
	reader *bufio.Reader
}

// outputBuffer is how much of a container's output is buffered in this process, in
// bytes.
const outputBuffer = 32 << 10

func newOutput(r *running) *output {
	o := &output{r: r, buffer: make([]byte, outputBuffer)}
	for i, to := range []io.Writer{r.attempt.Stdout, r.attempt.Stderr} {
		if to == nil {
			to = io.Discard
		}
		o.streams[i].to = to
	}
	return o
}

// attach connects to the streams of a container that has not started. Docker's client
// has a call for that, but the call does not end with its context.
func (o *output) attach(ctx context.Context) error {
	conn, reader, err := o.r.e.engine.hijack(ctx, "/containers/"+o.r.id+"/attach?stream=1&stdout=1&stderr=1", nil)
	if err != nil {
		return err
	}
	o.attached = &attached{conn, reader}
	return nil
}

// close closes the stream of a container that is no longer followed.
func (o *output) close() {
	if o.attached != nil {
		o.attached.Close()
	}
}

// copy forwards the container's output until the container or ctx has ended.
func (o *output) copy(ctx context.Context) {
	defer func() { o.err = errors.Join(o.streams[0].fail, o.streams[1].fail) }()
	cut := time.Now()
	if o.attached != nil {
		stop := context.AfterFunc(ctx, func() { o.attached.Close() })
		_ = o.read(o.attached.reader, [2]int64{}) // its error is investigated below
		cut = time.Now()
		stop()
		select {
		case <-ctx.Done():
			return
		case <-o.r.ended:
			if !o.r.loss.isMarked() {
				return
			}
		case <-o.r.loss.lost:
		case <-time.After(cutPatience):
		}
	}
	o.resume(ctx, cut)
}

// cutPatience is how long after the end of its streams a container's end must be known.
// Otherwise the streams count as interrupted.
const cutPatience = time.Second

// resume forwards what the engine has retained since the stream was interrupted at a
// time, and then follows new output.
func (o *output) resume(ctx context.Context, cut time.Time) {
	for ctx.Err() == nil {
		state, err := o.r.state(ctx)
		if err != nil {
			return // await reports the error
		}
		if !alive(state) {
			if o.r.e.kind.Lasts && !o.r.hasEnded(ctx) {
				continue // the container may be starting again
			}
			if err := o.forwardRetained(ctx, time.Time{}, false); err == nil || cerrdefs.IsNotFound(err) {
				return
			}
			continue
		}
		// What the engine retained from before the cut may lack an unfinished line that
		// has already been forwarded. So bytes after the cut are counted separately.
		if o.passed != [2]int64{} {
			if err := o.forwardRetained(ctx, cut, false); err != nil {
				continue
			}
			o.since, o.passed = cut, [2]int64{}
		}
		_ = o.forwardRetained(ctx, time.Time{}, true)
		cut = time.Now()
	}
}

// forwardRetained forwards what the engine has retained, from o.since until a time or the end. It
// skips what has already been forwarded of it.
func (o *output) forwardRetained(ctx context.Context, until time.Time, follow bool) error {
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: follow}
	if !o.since.IsZero() {
		options.Since = o.since.Format(time.RFC3339Nano)
	}
	if !until.IsZero() {
		options.Until = until.Format(time.RFC3339Nano)
	}
	kept, err := o.r.e.docker.ContainerLogs(ctx, o.r.id, options)
	if err != nil {
		return err
	}
	defer kept.Close()
	return o.read(bufio.NewReaderSize(kept, outputBuffer), o.passed)
}

// read decodes a stream of the engine. The stream consists of frames: a header of eight bytes, with
// the number of the stream first and the length last, and the data. read skips the first bytes of
// either stream, as many as skip says.
func (o *output) read(from *bufio.Reader, skip [2]int64) error {
	var header [8]byte
	for {
		if _, err := io.ReadFull(from, header[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		i := int(header[0]) - 1
		if i < 0 || i >= len(o.streams) {
			return fmt.Errorf("the engine sent an unknown stream type %d", header[0])
		}
		for left := int64(binary.BigEndian.Uint32(header[4:])); left > 0; {
			n, err := from.Read(o.buffer[:min(left, int64(len(o.buffer)))])
			left -= int64(n)
			data := o.buffer[:n]
			drop := min(skip[i], int64(n))
			skip[i] -= drop
			if data = data[drop:]; len(data) > 0 {
				o.passed[i] += int64(len(data))
				o.streams[i].write(data)
			}
			if err != nil {
				return err
			}
		}
	}
}

// write forwards data. After an error it discards all further data, since the program
// must not notice that its output could not be written.
func (s *stream) write(data []byte) {
	s.head = append(s.head, data[:min(len(data), maxHead-len(s.head))]...)
	if s.fail == nil {
		_, s.fail = s.to.Write(data)
	}
}

// isTooLong reports whether the only output is the message of an engine that the arguments of the program are too long. Docker has
// started the container by then, and runc prints the message in the place of the program.
func (o *output) isTooLong() bool {
	line, found := bytes.CutSuffix(o.streams[1].head, []byte("\n"))
	return found && len(o.streams[0].head) == 0 && !bytes.ContainsRune(line, '\n') && bytes.HasSuffix(bytes.ToLower(line), []byte(": "+executor.ArgumentsTooLong))
}
