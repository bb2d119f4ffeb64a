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

// maxSecretInput bounds how many bytes of a token or a secret are read. It exceeds the limit of a gateway.
const maxSecretInput = 128 << 10

// readSecret reads a secret. If standard input is a terminal, it prompts for one line without echo; else it reads all
// of standard input without the final line end.
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

// readSecretFile returns the contents of a file unchanged.
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

// readPassword reads a line from a terminal without echo. It turns the echo on again when ctx ends.
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
	go func() { // if ctx ends first, the goroutine lives until the process ends
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
