package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// MaxMessage is the maximum size of a message in bytes.
const MaxMessage = 1 << 20

// MaxChunk is the maximum amount of data in a frame, in bytes. A frame fits into a block of a stream, and a reader that waits
// for input holds little memory.
const MaxChunk = 31 << 10

// WriteMessage writes a message, preceded by its length, in one Write.
func WriteMessage(w io.Writer, m proto.Message) error {
	size := proto.Size(m)
	if size > MaxMessage {
		return fmt.Errorf("a %s has %d bytes; at most %d are sent", m.ProtoReflect().Descriptor().Name(), size, MaxMessage)
	}
	out := binary.AppendUvarint(make([]byte, 0, size+binary.MaxVarintLen32), uint64(size))
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(out, m)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// ReadMessage reads a message that WriteMessage has written, and no bytes beyond it. It returns io.EOF if there is no
// message.
func ReadMessage(r io.Reader, m proto.Message) error {
	size, err := readLength(r)
	if err != nil {
		return err
	}
	if size > MaxMessage {
		return fmt.Errorf("a %s has %d bytes; at most %d are read", m.ProtoReflect().Descriptor().Name(), size, MaxMessage)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return unexpected(err)
	}
	return proto.Unmarshal(body, m)
}

// readLength reads the length byte by byte, so as not to read beyond it.
func readLength(r io.Reader) (length uint64, err error) {
	var b [1]byte
	for shift := 0; shift < 7*binary.MaxVarintLen32; shift += 7 {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			if shift > 0 {
				err = unexpected(err)
			}
			return 0, err
		}
		length |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return length, nil
		}
	}
	return 0, errors.New("malformed session message: its length is invalid")
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Request sends a header on a new stream and reads the reply. If the other side refuses, Request returns a *RefusedError with
// its text. An error, including the end of ctx before the reply, closes the stream.
func Request(ctx context.Context, conn Conn, h *v1.SessionHeader) (*v1.SessionReply, error) {
	stop := context.AfterFunc(ctx, func() { Abort(conn, "") })
	reply := &v1.SessionReply{}
	err := WriteMessage(conn, h)
	if err == nil {
		err = unexpected(ReadMessage(conn, reply))
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err == nil && reply.GetError() != "" {
		err = &RefusedError{Code: reply.GetCode(), Message: reply.GetError()}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return reply, nil
}

// headerTimeout bounds the wait for the header of a stream.
const headerTimeout = 30 * time.Second

// ReadHeader reads the header of a new stream.
func ReadHeader(conn Conn) (*v1.SessionHeader, error) {
	_ = conn.SetReadDeadline(time.Now().Add(headerTimeout))
	h := &v1.SessionHeader{}
	if err := ReadMessage(conn, h); err != nil {
		return nil, err
	}
	return h, conn.SetReadDeadline(time.Time{})
}

// Refuse replies to a header with an error and closes the stream.
func Refuse(conn Conn, code, message string) {
	_ = WriteMessage(conn, &v1.SessionReply{Error: message, Code: code})
	_ = conn.Close()
}
