package container

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"switchyard/activities/executor"
)

// execStreams are the streams of a command, on a connection to the engine.
type execStreams struct {
	conn   net.Conn
	reader *bufio.Reader
	// failure is the engine's message that the command could not be started, or empty. The engine prints it in place of the output,
	// so what looks like it is held back until it is known what it is.
	failure string
	held    io.Writer
	ran     bool
}

// endOfText is what a terminal takes for the end of the input.
const endOfText = 4

// copyIn passes on the input of a command, and its end.
func (s *execStreams) copyIn(c executor.Command) {
	if c.Stdin == nil {
		return
	}
	last := &lastByte{to: s.conn, last: '\n'}
	if _, err := io.Copy(last, c.Stdin); err != nil {
		return
	}
	if c.Terminal != nil {
		// A terminal has no end. In an unfinished line the first sends what there is of it.
		end := []byte{endOfText}
		if last.last != '\n' && last.last != '\r' && last.last != endOfText {
			end = append(end, endOfText)
		}
		_, _ = s.conn.Write(end)
		return
	}
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// lastByte remembers the last byte that is written.
type lastByte struct {
	to   io.Writer
	last byte
}

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.last = p[len(p)-1]
	}
	return l.to.Write(p)
}

// copyOut passes on the output of a command until it ends. After an error of a writer the rest is thrown away.
func (s *execStreams) copyOut(c executor.Command) error {
	streams := [2]stream{{to: writerOr(c.Stdout)}, {to: writerOr(c.Stderr)}}
	buffer := make([]byte, outputBuffer)
	left, at := int64(0), 0 // of the frame
	for first := true; ; first = false {
		if c.Terminal == nil && left == 0 {
			var header [8]byte
			if _, err := io.ReadFull(s.reader, header[:]); err != nil {
				return errors.Join(streams[0].fail, streams[1].fail)
			}
			left, at = int64(binary.BigEndian.Uint32(header[4:])), int(header[0])-1
			if at < 0 || at >= len(streams) {
				return fmt.Errorf("the engine sends a stream of the unknown kind %d", header[0])
			}
		}
		part := buffer
		if c.Terminal == nil {
			part = buffer[:min(left, int64(len(buffer)))]
		}
		n, err := s.reader.Read(part)
		left = max(left-int64(n), 0)
		if data := part[:n]; first && isStartFailure(data) {
			s.failure, s.held = strings.TrimSpace(string(data)), streams[at].to
		} else if n > 0 {
			if s.failure != "" {
				s.printHeld()
			}
			streams[at].write(data)
		}
		if err != nil {
			return errors.Join(streams[0].fail, streams[1].fail)
		}
	}
}

func writerOr(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// isStartFailure reports whether output looks like an engine's message about a command that it cannot start.
func isStartFailure(data []byte) bool {
	text := strings.ToLower(string(data[:min(len(data), 200)]))
	for _, begin := range []string{"oci runtime exec failed", "unable to find user", "unable to find group", "container "} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// startFailure returns the error of a command that could not be started.
func startFailure(text string, code int) error {
	err := blame("run a command", errors.New(text))
	if start := executor.AsStartError(err); start != nil {
		return start
	}
	return &executor.StartError{ExitCode: code, Err: err}
}

// printHeld passes on output that was no message of the engine after all.
func (s *execStreams) printHeld() {
	_, _ = io.WriteString(s.held, s.failure+"\n")
	s.failure = ""
}
