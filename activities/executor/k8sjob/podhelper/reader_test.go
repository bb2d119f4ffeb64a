package podhelper

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const testNonce = "N0NCE"

// logOf returns the log of a program that printed a text and left files.
func logOf(t testing.TB, printed string, files ...content) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(printed)
	if err := writeFrames(&b, testNonce, files); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readInPieces passes a log through a Reader in pieces and returns what it passed on.
func readInPieces(t testing.TB, log string, piece func() int) (string, *Reader) {
	t.Helper()
	var passed strings.Builder
	r := NewReader(testNonce, &passed)
	for len(log) > 0 {
		n := min(max(piece(), 1), len(log))
		if wrote, err := r.Write([]byte(log[:n])); wrote != n || err != nil {
			t.Fatalf("Write returns %d, %v for %d bytes", wrote, err, n)
		}
		log = log[n:]
	}
	if err := r.Close(); err != nil || r.HasHeld() {
		t.Fatalf("Close returns %v, held: %v", err, r.HasHeld())
	}
	return passed.String(), r
}

// inOneLine returns a program's output as the Reader passes it on, with a final newline.
func inOneLine(printed string) string {
	if printed == "" || strings.HasSuffix(printed, "\n") {
		return printed
	}
	return printed + "\n"
}

func whole(kind Kind, data []byte) content { return content{kind: kind, data: data} }

func randomBytes(n int) []byte {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(data)
	return data
}

func TestFramesComeBackAndOutputIsUnchanged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SampledFrom([]string{"\n", "\n\n", "a", "line\n", "\x1e", "\x1eswitch", "\x1eswitchyard ", "\x1eswitchyard N0NC", "\x1eswitchyard other output 1/1 YQ==\n", "\r\n", "ü", "\x00"})
		printed := strings.Join(rapid.SliceOfN(words, 0, 12).Draw(rt, "printed"), "")
		var files []content
		want := map[Kind][]byte{}
		for _, kind := range kinds {
			if size := rapid.SampledFrom([]int{0, 1, 100, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 5}).Draw(rt, string(kind)); size > 0 {
				want[kind] = randomBytes(size)
				files = append(files, whole(kind, want[kind]))
			}
		}
		most := rapid.SampledFrom([]int{1, 3, 50, 10_000, 1 << 20}).Draw(rt, "most")
		got, r := readInPieces(t, logOf(t, printed, files...), func() int { return rapid.IntRange(1, most).Draw(rt, "piece") })
		if got != inOneLine(printed) {
			rt.Fatalf("%q became %q", printed, got)
		}
		found, err := r.Files()
		if err != nil || len(found) != len(want) || !r.InFrames() {
			rt.Fatalf("%d of %d files, %v", len(found), len(want), err)
		}
		for kind, data := range want {
			if !bytes.Equal(found[kind], data) {
				rt.Fatalf("%s differs", kind)
			}
		}
	})
}

func TestOutputWithoutFramesIsUnchanged(t *testing.T) {
	for _, printed := range []string{"", "\n", "\n\n", "a", "a\n", "a\n\n", "\x1e", "a\n\n\x1eswitchyard N0NC", "\x1eswitchyard x\n"} {
		got, r := readInPieces(t, printed, func() int { return 1 })
		if _, err := r.Files(); got != printed || r.InFrames() || !errors.Is(err, ErrNoList) {
			t.Errorf("%q became %q, %v", printed, got, err)
		}
	}
}

func TestTextIsHeldBackOnlyWhileItCouldBeAFrame(t *testing.T) {
	var passed strings.Builder
	r := NewReader(testNonce, &passed)
	for _, step := range []struct {
		text, passed string
		held         bool
	}{
		{"a", "a", false},
		{"\n", "a\n", false},
		{"\n", "a\n", true},
		{"\n", "a\n\n", true},
		{"b\x1e", "a\n\n\nb", true},
		{"c", "a\n\n\nb\x1ec", false},
		{"\x1eswitchyard N0NCE", "a\n\n\nb\x1ec", true},
		{"!\n", "a\n\n\nb\x1ec\x1eswitchyard N0NCE!\n", false},
		{"\n\x1eswitchyard N0NCE files", "a\n\n\nb\x1ec\x1eswitchyard N0NCE!\n", true},
		{"\nend", "a\n\n\nb\x1ec\x1eswitchyard N0NCE!\nend", false},
	} {
		if _, err := r.Write([]byte(step.text)); err != nil || passed.String() != step.passed || r.HasHeld() != step.held {
			t.Fatalf("after %q: %q, held %v, %v", step.text, passed.String(), r.HasHeld(), err)
		}
	}
	if !r.InFrames() {
		t.Error("the first frame has not been noticed")
	}
}

func TestLogThatWasCutHasNoDamagedFile(t *testing.T) {
	output, update := randomBytes(3*chunkSize), []byte("a=1\n")
	log := logOf(t, "text\n", whole(Output, output), whole(ContextUpdate, update))
	lines := strings.SplitAfter(log, "\n")
	for from := range lines {
		for to := from; to <= len(lines); to++ {
			if from <= 2 && to >= len(lines)-1 {
				continue // all frames are complete
			}
			_, r := readInPieces(t, strings.Join(lines[from:to], ""), func() int { return 5000 })
			files, err := r.Files()
			if err == nil {
				t.Fatalf("lines %d to %d of %d have all files", from, to, len(lines))
			}
			if data, ok := files[Output]; ok && !bytes.Equal(data, output) {
				t.Fatalf("lines %d to %d: the output is damaged", from, to)
			}
		}
	}
	for _, end := range []int{len(log) - 1, len(log) - 100} {
		passed, r := readInPieces(t, log[:end], func() int { return 100 })
		files, err := r.Files()
		var of *FileError
		if !errors.As(err, &of) || passed != "text\n" || len(files) > 1 {
			t.Errorf("cut at %d: %q, %v", end, passed, err)
		}
	}
}

func TestMissingFilesAreExplained(t *testing.T) {
	log := logOf(t, "", content{kind: Output, size: MaxFile + 1}, content{kind: ContextUpdate, err: errors.New("it is a directory")})
	_, r := readInPieces(t, log, func() int { return 10 })
	files, err := r.Files()
	const want = "SWITCHYARD_OUTPUT is too large: the file has 4194305 bytes; at most 4194304 can be transferred in the log of a pod\n" +
		"SWITCHYARD_CONTEXT_UPDATE is unreadable: it is a directory"
	if err == nil || err.Error() != want || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
	damaged := strings.Replace(logOf(t, "", whole(Output, []byte("abc"))), "YWJj", "YWJk", 1)
	_, r = readInPieces(t, damaged, func() int { return 10 })
	var of *FileError
	if _, err := r.Files(); !errors.As(err, &of) || of.Kind != Output || of.Fault != Incomplete {
		t.Errorf("a changed file: %v", err)
	}
}

func TestFramesStandAmongTextOfTheOtherStream(t *testing.T) {
	data := randomBytes(2 * chunkSize)
	lines := strings.SplitAfter(logOf(t, "out\n", whole(Output, data)), "\n")
	lines = slices.Insert(lines, 4, "a long line, ")
	lines = slices.Insert(lines, 3, "line\n", "beginning of ")
	log := strings.Join(lines, "") + "the rest of it\n"
	passed, r := readInPieces(t, log, func() int { return 7 })
	files, err := r.Files()
	if err != nil || !bytes.Equal(files[Output], data) || passed != "out\nline\nbeginning of a long line, the rest of it\n" {
		t.Errorf("%q, %v", passed, err)
	}
}

func TestFramesReadAgainFromTheFirstAreComplete(t *testing.T) {
	data := randomBytes(3 * chunkSize)
	log := logOf(t, "out\n", whole(Output, data))
	again := log[len("out\n"):]
	_, r := readInPieces(t, log[:strings.LastIndex(log, "\x1e")]+again, func() int { return 100 })
	if files, err := r.Files(); err != nil || !bytes.Equal(files[Output], data) {
		t.Error(err)
	}
}

func TestFramesOfATerminalAreRead(t *testing.T) {
	log := strings.ReplaceAll(logOf(t, "out\n", whole(Output, []byte("abc"))), "\n", "\r\n")
	_, r := readInPieces(t, log, func() int { return 3 })
	if files, err := r.Files(); err != nil || string(files[Output]) != "abc" {
		t.Error(err)
	}
}

func TestReaderWithoutNoncePassesEverythingOn(t *testing.T) {
	var passed strings.Builder
	r := NewReader("", &passed)
	log := logOf(t, "a\n", whole(Output, []byte("abc")))
	if _, err := io.WriteString(r, log); err != nil || r.Close() != nil || passed.String() != log {
		t.Errorf("%q, %v", passed.String(), err)
	}
}

func TestReaderReturnsTheErrorOfItsWriter(t *testing.T) {
	broken, w := io.Pipe()
	_ = broken.CloseWithError(io.ErrShortBuffer)
	r := NewReader(testNonce, w)
	for range 2 {
		if n, err := io.WriteString(r, "abc"); n != 0 || !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("%d, %v", n, err)
		}
	}
	if err := r.Close(); !errors.Is(err, io.ErrShortBuffer) {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add("out\n\n", []byte("abc"), uint16(1), "")
	f.Add("out", []byte(nil), uint16(100), "\x1eswitchyard N0NCE output 1/2 YWJj\n")
	f.Add("", bytes.Repeat([]byte("x"), chunkSize+1), uint16(9), "\x1eswitchyard N0NCE files output=whole:1:00\n")
	f.Fuzz(func(t *testing.T, printed string, output []byte, piece uint16, before string) {
		// Nothing breaks, whatever the log holds.
		_, r := readInPieces(t, before, func() int { return int(piece) })
		_, _ = r.Files()
		if strings.Contains(printed, marker(testNonce)) || len(output) > MaxFile {
			return
		}
		var files []content
		if len(output) > 0 {
			files = append(files, whole(Output, output))
		}
		got, r := readInPieces(t, logOf(t, printed, files...), func() int { return int(piece) })
		found, err := r.Files()
		if got != inOneLine(printed) || err != nil || !bytes.Equal(found[Output], output) {
			t.Fatalf("%q became %q, %v", printed, got, err)
		}
	})
}
