package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"switchyard/cli/exit"
)

// maxSecretInput bounds what is read of a token or a secret, in bytes: more than a gateway takes.
const maxSecretInput = 128 << 10

// readSecret reads a line that is not shown, if standard input is a terminal, or else all of standard input but the end of
// its last line.
func (s *system) readSecret(ctx context.Context, prompt string) ([]byte, error) {
	if file, ok := s.stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(s.screen, prompt)
		line, err := readPassword(ctx, int(file.Fd()))
		fmt.Fprintln(s.screen)
		if err != nil {
			return nil, fmt.Errorf("read from the terminal: %w", err)
		}
		return line, nil
	}
	text, err := readBounded(s.stdin)
	if err != nil {
		return nil, exit.Usagef("read standard input: %w", err)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), nil
}

// readSecretFile returns every byte of a file.
func readSecretFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exit.Usagef("read a secret: %w", err)
	}
	defer f.Close()
	text, err := readBounded(f)
	if err != nil {
		return nil, exit.Usagef("read %s: %w", path, err)
	}
	return text, nil
}

func readBounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSecretInput+1))
	if err == nil && len(text) > maxSecretInput {
		err = errors.New("it is too long")
	}
	return text, err
}

// readPassword reads a line from a terminal that does not show it. When ctx ends, the terminal shows again what is typed.
func readPassword(ctx context.Context, fd int) ([]byte, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() { // ends with the process if ctx ends first
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case got := <-read:
		return got.text, got.err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}
