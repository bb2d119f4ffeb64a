package podhelper

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// FrameVariable is the variable of the container that has the nonce of its frames. Without it, or if it is empty, the helper
// prints none.
const FrameVariable = "SWITCHYARD_FRAME"

// MaxFile bounds a file that travels within the log, in bytes. The kubelet keeps 10 MiB of a log unless told otherwise.
const MaxFile = 4 << 20

// chunkSize is how much of a file one frame has, in bytes. Its line is shorter than the 16 KiB at which containerd cuts lines.
const chunkSize = 6 << 10

// maxFrame bounds the line of a frame after its marker: a chunk, or what the list says of each file.
const maxFrame = 12 << 10

// listWord stands in the place of a kind in the first frame.
const listWord = "files"

// Kind is one of the files that travel.
type Kind string

// Kinds of files.
const (
	// Output is the file SWITCHYARD_OUTPUT.
	Output Kind = "output"
	// ContextUpdate is the file SWITCHYARD_CONTEXT_UPDATE.
	ContextUpdate Kind = "context-update"
)

// kinds lists the files in the order of their frames.
var kinds = []Kind{Output, ContextUpdate}

// Variable returns the variable with the path of the file.
func (k Kind) Variable() string {
	return "SWITCHYARD_" + strings.ReplaceAll(strings.ToUpper(string(k)), "-", "_")
}

// NewNonce returns a nonce for FrameVariable.
func NewNonce() string { return rand.Text() }

var nonceForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`) })

// checkNonce reports a nonce that cannot stand in a frame.
func checkNonce(nonce string) error {
	if !nonceForm().MatchString(nonce) {
		return fmt.Errorf("%s is %q, and must be at most 128 of letters, digits, '.', '_' and '-'", FrameVariable, nonce)
	}
	return nil
}

// marker returns what each frame begins with.
func marker(nonce string) string { return "\x1eswitchyard " + nonce + " " }

// States of a file in the list.
const (
	// stateWhole has the size and the SHA-256 of a file whose frames follow.
	stateWhole = "whole"
	// stateLarge has the size of a file that is larger than MaxFile.
	stateLarge = "large"
	// stateUnreadable has in base64 why a file cannot be read.
	stateUnreadable = "unreadable"
)

// content is a file as the helper has found it.
type content struct {
	kind Kind
	data []byte
	// size of a file that is too large, or 0.
	size int64
	// err is why the file cannot be read, or nil.
	err error
}

// writeFrames prints the frames of the files, each in one write.
func writeFrames(w io.Writer, nonce string, files []content) error {
	// A program may have printed a last line without newline.
	list := "\n" + marker(nonce) + listWord
	for _, f := range files {
		list += fmt.Sprintf(" %s=%s", f.kind, f.listing())
	}
	if _, err := io.WriteString(w, list+"\n"); err != nil {
		return err
	}
	for _, f := range files {
		total := chunksOf(len(f.data))
		for n := range total {
			chunk := f.data[n*chunkSize : min((n+1)*chunkSize, len(f.data))]
			line := fmt.Sprintf("%s%s %d/%d %s\n", marker(nonce), f.kind, n+1, total, base64.StdEncoding.EncodeToString(chunk))
			if _, err := io.WriteString(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// listing returns what the list says of a file.
func (f content) listing() string {
	switch {
	case f.err != nil:
		reason := f.err.Error()
		return stateUnreadable + ":" + base64.StdEncoding.EncodeToString([]byte(reason[:min(len(reason), 1000)]))
	case f.size > 0:
		return stateLarge + ":" + strconv.FormatInt(f.size, 10)
	}
	return fmt.Sprintf("%s:%d:%s", stateWhole, len(f.data), sumOf(f.data))
}

// chunksOf returns how many frames a file has.
func chunksOf(size int) int { return (size + chunkSize - 1) / chunkSize }

// sumOf returns the SHA-256 of a file, in hexadecimal.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
