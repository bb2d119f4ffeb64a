package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"switchyard/activities/executor"
)

// downloadProgress is how often a download reports progress.
const downloadProgress = 5 * time.Second

// download fetches an image into the cache. The file gets its final name only when it is complete and inspected.
func (m *Images) download(ctx context.Context, s source, say func(string)) (base Base, err error) {
	if err := os.MkdirAll(m.opts.CacheDir, 0o700); err != nil {
		return Base{}, fmt.Errorf("cache of images: %w", err)
	}
	if err := checkRoom(m.opts.CacheDir, s.size); err != nil {
		return Base{}, err
	}
	file, err := os.CreateTemp(m.opts.CacheDir, "*"+partialSuffix)
	if err != nil {
		return Base{}, err
	}
	defer func() {
		// After a success the file has been renamed.
		if removal := os.Remove(file.Name()); err != nil && !errors.Is(removal, os.ErrNotExist) {
			err = errors.Join(err, removal)
		}
	}()
	written, err := m.fill(ctx, file, s, say)
	if err = errors.Join(err, file.Close()); err != nil {
		return Base{}, err
	}
	info, err := inspect(ctx, file.Name(), path.Base(s.ref))
	if err == nil && info.Format == FormatQcow2 {
		err = check(ctx, file.Name())
	}
	if err != nil {
		return Base{}, classify(ctx, err)
	}
	if err := os.Chmod(file.Name(), 0o400); err != nil {
		return Base{}, err
	}
	at := filepath.Join(m.opts.CacheDir, s.fileName(info.Format))
	if err := os.Rename(file.Name(), at); err != nil {
		return Base{}, err
	}
	say(fmt.Sprintf("downloaded %s, %s", s.ref, formatSize(written)))
	m.sweep()
	return Base{at, info.Format, info.VirtualSize, true}, nil
}

// fill copies the bytes of a source to a file.
func (m *Images) fill(ctx context.Context, file *os.File, s source, say func(string)) (int64, error) {
	whole := ""
	if s.size > 0 {
		whole = " of " + formatSize(s.size)
	}
	say(fmt.Sprintf("downloading %s%s", s.ref, whole))
	// Closing the reader when ctx ends unblocks a read that hangs.
	stop := context.AfterFunc(ctx, func() { _ = s.reader.Close() })
	defer stop()
	next := m.now().Add(downloadProgress)
	buffer := make([]byte, 1<<20)
	var written int64
	for {
		n, err := s.reader.Read(buffer)
		if ctx.Err() != nil {
			return written, context.Cause(ctx)
		}
		if n > 0 {
			if err := checkRoom(m.opts.CacheDir, int64(n)); err != nil {
				return written, err
			}
			if _, err := file.Write(buffer[:n]); err != nil {
				return written, err
			}
			written += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return written, nil
		case err != nil:
			return written, fmt.Errorf("download after %s: %w", formatSize(written), err)
		case m.now().After(next):
			say(fmt.Sprintf("downloading %s: %s%s", s.ref, formatSize(written), whole))
			next = m.now().Add(downloadProgress)
		}
	}
}

// classify blames the spec for a failed inspection, unless the node is at fault.
func classify(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrNoProgram) || errors.Is(err, os.ErrPermission) {
		return err
	}
	return &executor.StartError{ExitCode: exitCannotRun, BadSpec: true, Err: err}
}
