package logs

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"switchyard/activities/secrets/mask"
	"switchyard/activities/store/storetest"
	"switchyard/dev/testneeds"
)

const secret = "hunter2-correct-horse"

// Neither a log nor its tails contain a secret, wherever the output is split. The output of each instance is otherwise
// complete.
func TestSecretsAreMasked(t *testing.T) {
	onEach(t, func(t *testing.T, s Store) {
		for _, piece := range []int{1, 3, 1000} {
			a := attempt
			a.Claim = int32(piece)
			w := NewWriter(s, a, Options{Masks: mask.New([]string{secret})})
			print := func(stream, text string) {
				for part := range slices.Chunk([]byte(text), piece) {
					if n, err := w.Stream(stream).Write(part); n != len(part) || err != nil {
						t.Fatal(n, err)
					}
				}
			}
			w.Begin("build[0]", 0, 1)
			print(Stdout, "a "+secret+" b hunter2-")
			print(Stderr, secret+secret)
			w.Begin("build[1]", 0, 1)
			print(Stdout, "correct-horse and "+secret)
			w.Notice("given " + secret)
			w.Flush()
			if text, _ := w.Tail(Stdout); text != "correct-horse and ***" {
				t.Errorf("the tail is %q", text)
			}
			print(Stdout, " hunter2")
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			of := map[string]string{}
			for next, ended := int64(0), false; !ended; {
				entries, after, end, err := Read(t.Context(), s, a, next)
				if err != nil || after == next {
					t.Fatalf("the log ends at %d, %v", next, err)
				}
				for _, e := range entries {
					of[e.GetTask()+" "+e.GetStream()] += string(e.GetData())
				}
				next, ended = after, end
			}
			for who, want := range map[string]string{
				"build[0] stdout": "a *** b hunter2-", "build[0] stderr": "******",
				"build[1] stdout": "correct-horse and *** hunter2", "build[1] stderr": "[switchyard: given ***]\n",
			} {
				if of[who] != want {
					t.Errorf("in pieces of %d, %s has %q, want %q", piece, who, of[who], want)
				}
			}
		}
	})
}

// A prompt without a newline is stored like any other output.
func TestMasksHoldBackNoPrompt(t *testing.T) {
	s := storetest.Open(t, "mem://")
	w := NewWriter(s, attempt, Options{Masks: mask.New([]string{secret}), FlushInterval: time.Millisecond})
	defer w.Close(context.WithoutCancel(t.Context()))
	if _, err := io.WriteString(w.Stream(Stdout), "Continue? "); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "it is stored", func() bool { return string(readAll(t, s, attempt).stdout) == "Continue? " })
}
