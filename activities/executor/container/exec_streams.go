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

// execStreams holds the streams of a command, on one connection to the engine.
type execStreams struct {
	conn   net.Conn
	reader *bufio.Reader
	// failure is the engine's message that it could not start the command, or "". The engine sends the message in place of
	// output. Output that looks like such a message is held back until the command is known to have started or not.
	failure string
	held    io.Writer
	ran     bool
}

// endOfText is the character that a terminal interprets as the end of input.
const endOfText = 4

// copyIn forwards the input of a command, and the end of the input.
func (s *execStreams) copyIn(c executor.Command) {
	if c.Stdin == nil {
		return
	}
	last := &lastByte{to: s.conn, last: '\n'}
	if _, err := io.Copy(last, c.Stdin); err != nil {
		return
	}
	if c.Terminal != nil {
		// A terminal cannot be half-closed. In an unfinished line, the first endOfText only submits the line.
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

// lastByte remembers the last byte written.
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

// copyOut forwards the output of a command until it ends. After a write error it discards the rest.
func (s *execStreams) copyOut(c executor.Command) error {
	streams := [2]stream{{to: writerOr(c.Stdout)}, {to: writerOr(c.Stderr)}}
	buffer := make([]byte, outputBuffer)
	left, at := int64(0), 0 // of the current frame
	for first := true; ; first = false {
		if c.Terminal == nil && left == 0 {
			var header [8]byte
			if _, err := io.ReadFull(s.reader, header[:]); err != nil {
				return errors.Join(streams[0].fail, streams[1].fail)
			}
			left, at = int64(binary.BigEndian.Uint32(header[4:])), int(header[0])-1
			if at < 0 || at >= len(streams) {
				return fmt.Errorf("the engine sent an unknown stream type %d", header[0])
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

// isStartFailure reports whether output looks like an engine's message that it cannot start a command.
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
	err := classifyFault("run a command", errors.New(text))
	if start := executor.AsStartError(err); start != nil {
		return start
	}
	return &executor.StartError{ExitCode: code, Err: err}
}

// printHeld forwards held-back output that turned out to be the command's own.
func (s *execStreams) printHeld() {
	_, _ = io.WriteString(s.held, s.failure+"\n")
	s.failure = ""
}
