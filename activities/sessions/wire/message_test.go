package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestMessagesAreReadWithoutTheBytesAfterThem(t *testing.T) {
	var b bytes.Buffer
	for _, task := range []string{"", "build", strings.Repeat("x", 1000)} {
		if err := WriteMessage(&b, &v1.SessionHeader{Task: task}); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("behind")
	for _, task := range []string{"", "build", strings.Repeat("x", 1000)} {
		h := &v1.SessionHeader{}
		if err := ReadMessage(&b, h); err != nil || h.GetTask() != task {
			t.Fatalf("%q, %v", h.GetTask(), err)
		}
	}
	if b.String() != "behind" {
		t.Errorf("%q is left", b.String())
	}
}

func TestBadMessagesAreRefused(t *testing.T) {
	if err := WriteMessage(io.Discard, &v1.SessionHeader{Task: strings.Repeat("x", MaxMessage)}); err == nil {
		t.Error("a large message is written")
	}
	for in, want := range map[string]error{"": io.EOF, "\x05ab": io.ErrUnexpectedEOF, "\x80": io.ErrUnexpectedEOF, "\xff\xff\xff\x7f": nil, "\xff\xff\xff\xff\xff\xff\xff": nil, "\x01\xff": nil} {
		err := ReadMessage(strings.NewReader(in), &v1.SessionHeader{})
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("\x07\x12\x05build"))
	f.Fuzz(func(_ *testing.T, in []byte) {
		_ = ReadMessage(bytes.NewReader(in), &v1.SessionHeader{})
	})
}
