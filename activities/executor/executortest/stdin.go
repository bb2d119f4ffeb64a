package executortest

import (
	"io"
	"os"
	"strings"
	"testing"

	"switchyard/activities/executor"
)

// stdin checks that a program reads the standard input of its attempt, which the executor does not close, and reads nothing
// if the attempt has none.
func (h Harness) stdin(t *testing.T) {
	if !h.Stdin {
		t.Skip("attempts have no standard input")
	}
	e := h.New(t)
	t.Run("none", func(t *testing.T) {
		a, c := h.attempt(t, Program{Echo: true})
		h.finish(t, t.Context(), e, a, c)
		if got := c.out.String(); got != "" {
			t.Errorf("the program reads %q, want nothing", got)
		}
	})
	t.Run("pipe", func(t *testing.T) {
		a, c := h.attempt(t, Program{Echo: true})
		text := longText(t, &a)
		h.finish(t, t.Context(), e, a, c)
		if got := c.out.String(); got != text {
			t.Errorf("the program reads %d bytes, want %d", len(got), len(text))
		}
	})
	t.Run("batch", func(t *testing.T) {
		if e.Capabilities().Batch == nil {
			t.Skip("this executor runs no batches")
		}
		first, _ := h.attempt(t, Program{})
		row := h.beginBatch(t, first)
		for range 2 {
			a, c := h.attempt(t, Program{Echo: true})
			text := longText(t, &a)
			if _, err := row.Run(t.Context(), a, c.spawned); err != nil {
				t.Fatal(err)
			}
			if got := c.out.String(); got != text {
				t.Errorf("the program reads %d bytes, want %d", len(got), len(text))
			}
		}
	})
}

// longText gives an attempt a standard input that exceeds the capacity of a pipe, and returns the text.
func longText(t *testing.T, a *executor.Attempt) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a line of a prompt\n", 20_000)
	go func() {
		defer write.Close()
		_, _ = io.WriteString(write, text) // missing input shows up in the output
	}()
	t.Cleanup(func() {
		if err := read.Close(); err != nil {
			t.Errorf("the executor has closed standard input: %v", err)
		}
	})
	a.Stdin = read
	return text
}
