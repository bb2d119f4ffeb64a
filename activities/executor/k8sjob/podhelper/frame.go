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

// FrameVariable is the variable of the container that holds the nonce of its frames. If it is unset or empty, the
// helper prints no frames.
const FrameVariable = "SWITCHYARD_FRAME"

// MaxFile bounds a file that is transferred in the log, in bytes. By default the kubelet keeps 10 MiB of a log.
const MaxFile = 4 << 20

// chunkSize is how much of a file one frame holds, in bytes. Its line stays below the 16 KiB at which containerd splits
// lines.
const chunkSize = 6 << 10

// maxFrame bounds the line of a frame after its marker: a chunk, or the list of files.
const maxFrame = 12 << 10

// listWord takes the place of the kind in the first frame.
const listWord = "files"

// Kind identifies a file that is transferred.
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

// Variable returns the name of the variable that holds the file's path.
func (k Kind) Variable() string {
	return "SWITCHYARD_" + strings.ReplaceAll(strings.ToUpper(string(k)), "-", "_")
}

// NewNonce returns a nonce for FrameVariable.
func NewNonce() string { return rand.Text() }

var nonceForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`) })

// checkNonce returns an error for a nonce that is not valid in a frame.
func checkNonce(nonce string) error {
	if !nonceForm().MatchString(nonce) {
		return fmt.Errorf("%s is %q, and must be at most 128 of letters, digits, '.', '_' and '-'", FrameVariable, nonce)
	}
	return nil
}

// marker returns the prefix of each frame.
func marker(nonce string) string { return "\x1eswitchyard " + nonce + " " }

// States of a file in the list.
const (
	// stateWhole precedes the size and the SHA-256 of a file whose frames follow.
	stateWhole = "whole"
	// stateLarge precedes the size of a file that is larger than MaxFile.
	stateLarge = "large"
	// stateUnreadable precedes the reason why a file cannot be read, in base64.
	stateUnreadable = "unreadable"
)

// content is a file as the helper found it.
type content struct {
	kind Kind
	data []byte
	// size is the size of a file that is too large, or 0.
	size int64
	// err is why the file cannot be read, or nil.
	err error
}

// writeFrames prints the frames of the files, each in one write.
func writeFrames(w io.Writer, nonce string, files []content) error {
	// The program's last line may lack a newline.
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

// listing returns the list's entry for a file, without its kind.
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

// chunksOf returns the number of frames of a file.
func chunksOf(size int) int { return (size + chunkSize - 1) / chunkSize }

// sumOf returns the SHA-256 of a file, in hexadecimal.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
