package testneeds

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// awaitPatience bounds the wait for a condition. Only a broken test reaches it.
const awaitPatience = 5 * time.Minute

// Await waits until a condition holds.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(awaitPatience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", awaitPatience, what)
		}
	}
}

// Output collects what goroutines write, and can be read meanwhile.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Await waits until the output contains a text.
func (o *Output) Await(t testing.TB, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the output is %q", o)
		}
	}()
	Await(t, fmt.Sprintf("%q is printed", text), func() bool { return strings.Contains(o.String(), text) })
}
