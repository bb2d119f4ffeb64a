package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/qemu/disk"
	v1 "switchyard/proto/switchyard/v1"
)

// syncPatience bounds how long a machine may take to flush its memory to its disk.
const syncPatience = 30 * time.Second

// Capture writes the disk of a machine to an archive, which is a qcow2 image. The machine is paused while its disk is
// copied and continues while the copy is sent. The copy does not contain the machine's memory. If the machine can be
// entered, Capture flushes its memory to the disk first.
func (e *Executor) Capture(ctx context.Context, id string, to io.Writer) (executor.Captured, error) {
	m := e.find(id)
	if m == nil || m.isEnding() {
		return executor.Captured{}, executor.ErrNotRunning
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.untilStop, func() { cancel(executor.ErrNotRunning) })()
	if err := m.capture(ctx, to); err != nil {
		if m.isEnding() {
			return executor.Captured{}, executor.ErrNotRunning
		}
		return executor.Captured{}, err
	}
	return executor.Captured{Kind: v1.EnvironmentDisk}, nil
}

// CaptureImage writes an image to an archive.
func (e *Executor) CaptureImage(ctx context.Context, image, _ string, to io.Writer, say func(string)) (executor.Captured, error) {
	base, err := e.opts.Images.Ensure(ctx, image, say)
	if start := executor.AsStartError(err); start != nil {
		return executor.Captured{}, &executor.Refusal{Text: err.Error()}
	}
	if err != nil {
		return executor.Captured{}, err
	}
	return executor.Captured{Kind: v1.EnvironmentDisk}, sendFile(ctx, base.Path, to)
}

// capture copies the disk of a machine to a file beside it and sends that file.
func (m *machine) capture(ctx context.Context, to io.Writer) error {
	if !m.capturing.TryLock() {
		return &executor.Refusal{Text: "the machine is already being captured; try again later"}
	}
	defer m.capturing.Unlock()
	if !m.isPaused() && m.login.hasAnswered() {
		m.syncDisk(ctx)
	}
	path := m.folder.file(captureFile)
	defer removeCapture(path)
	if err := m.copyDisk(ctx, path); err != nil {
		return fmt.Errorf("copy the disk of the machine: %w", err)
	}
	return sendFile(ctx, path, to)
}

// syncDisk makes the machine flush its memory to its disk. A failure is no error: the file system then recovers as
// after a loss of power.
func (m *machine) syncDisk(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	_, _ = m.guest.Exec(ctx, executor.Command{Args: []string{"sync"}})
}

// copyDisk copies the disk while the machine is paused.
func (m *machine) copyDisk(ctx context.Context, path string) (err error) {
	m.steering.Lock()
	defer m.steering.Unlock()
	if m.isEnding() {
		return executor.ErrNotRunning
	}
	removeCapture(path)
	if !m.isPaused() {
		// The marker file tells a later worker that no user asked for the pause.
		if err := os.WriteFile(path+markSuffix, nil, 0o600); err != nil {
			return err
		}
		if err := m.monitor.execute(ctx, "stop", nil, nil); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, m.monitor.execute(m.life, "cont", nil, nil), os.Remove(path+markSuffix))
		}()
	}
	return disk.Flatten(ctx, m.folder.file(diskFile), path, m.attempt.Notify)
}

// markSuffix is the suffix of the marker file that exists while a machine is paused for a capture.
const markSuffix = ".mark"

// removeCapture removes a copy of a disk, complete or not.
func removeCapture(path string) {
	found, _ := filepath.Glob(path + "*")
	for _, name := range found {
		_ = os.Remove(name) // the file is removed with the folder at the latest
	}
}

// endLeftCapture resumes a machine whose worker was killed during a capture.
func (m *machine) endLeftCapture() {
	path := m.folder.file(captureFile)
	if _, err := os.Stat(path + markSuffix); err != nil {
		return
	}
	m.steering.Lock()
	defer m.steering.Unlock()
	if err := m.monitor.execute(m.life, "cont", nil, nil); err != nil {
		m.e.logger.Warn("a virtual machine did not resume after its capture; resume it manually", "attempt", m.attempt.ID, "error", err)
		return
	}
	m.setPaused(false)
	removeCapture(path)
}

// sendFile copies a file to a writer until ctx ends.
func sendFile(ctx context.Context, path string, to io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(writerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return to.Write(p)
	}), file)
	return err
}

// writerFunc is a function that implements io.Writer.
type writerFunc func(p []byte) (int, error)

// Write calls f.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
