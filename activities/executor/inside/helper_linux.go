package inside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
)

// ServeFiles serves the files of the process over SFTP, version 3, until conn or ctx ends. A Read of conn may still be in
// progress when it returns.
func (p Process) ServeFiles(ctx context.Context, conn io.ReadWriter) error {
	return p.runHelper(ctx, plan{Action: serveSFTP}, conn, conn)
}

// ReadTar writes the file or directory at a path to an archive, see executor.Inside. It leaves out what it cannot read and
// reports it in the returned error. The error is an *Error if the files caused it.
func (p Process) ReadTar(ctx context.Context, path string, to io.Writer) error {
	return p.runHelper(ctx, plan{Action: readTar, Path: path}, nil, to)
}

// WriteTar unpacks an archive, see executor.Inside. A file appears under its name only when it is complete. The error is an
// *Error if the files or the archive caused it.
func (p Process) WriteTar(ctx context.Context, path string, rename bool, from io.Reader) error {
	return p.runHelper(ctx, plan{Action: writeTar, Path: path, Rename: rename}, from, io.Discard)
}

// runHelper starts a helper that carries out a plan. It returns when the helper has ended, without waiting for a pending Read of from.
func (p Process) runHelper(ctx context.Context, task plan, from io.Reader, to io.Writer) error {
	h, err := p.open()
	if err != nil {
		return err
	}
	defer h.Close()
	helper, err := h.start(task)
	if err != nil {
		return err
	}
	return helper.run(ctx, h, from, to)
}

// helper is the worker's end of a helper process.
type helper struct {
	process *os.Process
	// in carries the helper's input, out its output, and said its answer.
	in, out, said *os.File
}

// start starts a helper that carries out a plan.
func (h *hold) start(task plan) (*helper, error) {
	root, keep, err := h.prepare(&task)
	if err != nil {
		return nil, err
	}
	defer root.Close() // closing nil is harmless
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	written, err := memory(text)
	if err != nil {
		return nil, err
	}
	defer written.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	one, theirs, err := newHelper()
	if err != nil {
		return nil, err
	}
	attr := &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}, Sys: &syscall.SysProcAttr{Setsid: true},
		Files: []*os.File{theirs[0], theirs[1], null, written, theirs[2]},
	}
	if task.Root {
		attr.Files = append(attr.Files, root)
	}
	done := make(chan error, 1)
	go onOwnThread(func() {
		err := restrict(keep, task.Root || task.Switch)
		if err == nil {
			// If main does not call ServeIfAsked, --help makes most programs end at once.
			one.process, err = os.StartProcess("/proc/self/exe", []string{Name, "--help"}, attr)
		}
		done <- err
	})
	err = <-done
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		one.close()
		return nil, fmt.Errorf("start a helper for process %d: %w", h.p.PID, err)
	}
	return one, nil
}

// newHelper creates the pipes of a helper that has not started. It returns the worker's ends in the helper, and the ends for the
// process.
func newHelper() (*helper, [3]*os.File, error) {
	one, theirs := &helper{}, [3]*os.File{}
	var errs []error
	pipe := func(read, write **os.File) {
		var err error
		*read, *write, err = os.Pipe()
		errs = append(errs, err)
	}
	pipe(&theirs[0], &one.in)
	pipe(&one.out, &theirs[1])
	pipe(&one.said, &theirs[2])
	err := errors.Join(errs...)
	if err != nil {
		one.close()
		for _, f := range theirs {
			f.Close() // closing nil is harmless
		}
	}
	return one, theirs, err
}

// prepare fills in the user and the directory of the helper. It returns the root that the helper enters, or nil for the worker's
// own, and the capabilities that the helper keeps.
func (h *hold) prepare(task *plan) (root *os.File, keep capabilities, err error) {
	task.Dir = h.p.Dir
	shared, err := h.p.sharesFiles()
	if errors.Is(err, os.ErrPermission) {
		return nil, 0, refuse("the worker cannot access its files because the worker is not root")
	}
	if err != nil {
		return nil, 0, errors.Join(h.check(), err)
	}
	if shared && h.p.isOwnUser() {
		return nil, 0, nil
	}
	if !canSwitch() {
		return nil, 0, refuse("the worker cannot switch to its user because the worker is not root")
	}
	user, err := h.p.inWorkerNamespace()
	if err != nil {
		return nil, 0, err
	}
	task.Switch, task.UID, task.GID = true, int(user.UID), int(user.GID)
	for _, g := range user.Groups {
		task.Groups = append(task.Groups, int(g))
	}
	task.Groups = slices.Compact(slices.Sorted(slices.Values(task.Groups)))
	have, err := h.p.permitted()
	if err != nil {
		return nil, 0, errors.Join(h.check(), err)
	}
	keep = have&filePrivileges | enterPrivileges
	if shared {
		return nil, keep, h.check()
	}
	task.Root = true
	root, err = h.openRoot()
	return root, keep, err
}

// memory returns an anonymous in-memory file that holds a text.
func memory(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err := f.WriteAt(text, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (one *helper) close() {
	for _, f := range []*os.File{one.in, one.out, one.said} {
		f.Close()
	}
}

// run copies to and from the helper until it ends, either by itself or because ctx or the process ended.
func (one *helper) run(ctx context.Context, h *hold, from io.Reader, to io.Writer) error {
	defer one.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	ended := make(chan struct{}) // closed when the helper has ended
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			_ = one.process.Signal(syscall.SIGTERM)
			select {
			case <-time.After(endGrace):
				_ = one.process.Kill()
			case <-ended:
			}
		case <-ended:
		}
	}()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if h.awaitEnd() {
			cancel(executor.ErrNotRunning)
			_ = one.process.Kill()
		}
	}()
	if from == nil {
		one.in.Close()
	} else {
		go func() { // run does not wait for this goroutine
			_, err := io.Copy(onlyWriter{one.in}, from)
			if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, os.ErrClosed) {
				cancel(err)
			}
			one.in.Close()
		}()
	}
	_, copied := io.Copy(to, onlyReader{one.out})
	if copied != nil {
		cancel(copied)
	}
	said, _ := io.ReadAll(one.said)
	state, err := one.process.Wait()
	close(ended)
	<-stopped
	_ = h.pidfd.SetReadDeadline(time.Unix(1, 0))
	<-watched
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return err
	}
	return one.outcome(said, state)
}

// outcome returns the error that the helper reports, or nil.
func (one *helper) outcome(said []byte, state *os.ProcessState) error {
	var a answer
	if err := json.Unmarshal(said, &a); err != nil {
		return fmt.Errorf("the helper that reads and writes files has ended with %v; main must call ServeIfAsked before anything else", state)
	}
	switch {
	case a.Error == "":
		return nil
	case a.Denied:
		return refuse(a.Error)
	}
	return &Error{Text: a.Error, kind: kinds[a.Kind]}
}

// onlyWriter and onlyReader prevent io.Copy from splicing, which would hold back data until more arrives.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)
