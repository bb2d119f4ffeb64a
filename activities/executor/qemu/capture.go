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
		if err := os.WriteFile(m.folder.file(captureFile+markSuffix), nil, 0o600); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.resumeAfterCapture()) }()
		// QEMU carries the command out even if ctx is cancelled meanwhile.
		if err := m.monitor.execute(context.WithoutCancel(ctx), "stop", nil, nil); err != nil {
			return err
		}
	}
	return disk.Flatten(ctx, m.folder.file(diskFile), path, m.attempt.Notify)
}

// markSuffix is the suffix of the marker file that exists while a machine is paused for a capture.
const markSuffix = ".mark"

// resumeAfterCapture continues a machine that is paused for a capture. After an error the marker file stays. The caller
// holds steering.
func (m *machine) resumeAfterCapture() error {
	if err := m.monitor.execute(m.life, "cont", nil, nil); err != nil {
		return err
	}
	m.removeCaptureMark()
	return nil
}

// removeCaptureMark removes the marker file of a capture, if there is one.
func (m *machine) removeCaptureMark() {
	_ = os.Remove(m.folder.file(captureFile + markSuffix)) // the file is removed with the folder at the latest
}

// removeCapture removes a copy of a disk, complete or not, and leaves its marker file.
func removeCapture(path string) {
	found, _ := filepath.Glob(path + "*")
	for _, name := range found {
		if name != path+markSuffix {
			_ = os.Remove(name) // the file is removed with the folder at the latest
		}
	}
}

// endLeftCapture resumes a machine that is still paused for a capture that has ended, mostly with its worker. The caller
// holds steering.
func (m *machine) endLeftCapture() {
	if _, err := os.Stat(m.folder.file(captureFile + markSuffix)); err != nil {
		return
	}
	if err := m.resumeAfterCapture(); err != nil {
		m.e.logger.Warn("a virtual machine did not resume after its capture; resume it manually", "attempt", m.attempt.ID, "error", err)
		return
	}
	m.lifecycle.SetPaused(false)
	removeCapture(m.folder.file(captureFile))
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
