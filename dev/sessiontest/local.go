//go:build unix

package sessiontest

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/pkg/sftp"

	"switchyard/activities/executor"
)

// Local presents this machine as the inside of an attempt. Its archives contain one file each.
type Local struct {
	// Dir is the working directory of programs, and the base of relative paths.
	Dir string
	// Env is added to the environment of programs.
	Env []string
}

var _ executor.Inside = Local{}

// signals maps names to the signals that tests send.
var signals = map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "USR1": syscall.SIGUSR1}

// Exec runs a program on this machine, in a session of its own.
func (l Local) Exec(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
	args := c.Args
	if len(args) == 0 {
		if args = []string{"/bin/sh"}; c.Line != "" {
			args = append(args, "-c", c.Line)
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = cmp.Or(c.Dir, l.Dir), append(os.Environ(), l.Env...)
	for name, value := range c.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.Terminal != nil {
		return l.execTerminal(ctx, cmd, c)
	}
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	var stdin io.WriteCloser
	if c.Stdin != nil {
		var err error
		if stdin, err = cmd.StdinPipe(); err != nil {
			return executor.ExitStatus{}, err
		}
	}
	if err := cmd.Start(); err != nil {
		return executor.ExitStatus{}, err
	}
	if stdin != nil {
		go func() { // ends with the reader
			_, _ = io.Copy(stdin, c.Stdin)
			_ = stdin.Close()
		}()
	}
	return wait(ctx, cmd, c, cmd.Wait)
}

// execTerminal runs a program on a terminal.
func (l Local) execTerminal(ctx context.Context, cmd *exec.Cmd, c executor.Command) (executor.ExitStatus, error) {
	cmd.Env = append(cmd.Env, "TERM="+c.Terminal.Type)
	cmd.SysProcAttr.Setctty = true
	terminal, err := pty.StartWithAttrs(cmd, sizeOf(c.Terminal.Size), cmd.SysProcAttr)
	if err != nil {
		return executor.ExitStatus{}, err
	}
	defer terminal.Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(c.Stdout, terminal) // ends with EIO once no program has the terminal open
	}()
	if c.Stdin != nil {
		go func() { _, _ = io.Copy(terminal, c.Stdin) }() // ends with the reader
	}
	ended, resized := make(chan struct{}), make(chan struct{})
	defer func() {
		close(ended)
		<-resized
	}()
	go func() {
		defer close(resized)
		for {
			select {
			case size := <-c.Terminal.Resizes:
				_ = pty.Setsize(terminal, sizeOf(size))
			case <-ended:
				return
			}
		}
	}()
	return wait(ctx, cmd, c, func() error {
		err := cmd.Wait()
		<-copied
		return err
	})
}

func sizeOf(w executor.WindowSize) *pty.Winsize { return &pty.Winsize{Cols: w.Columns, Rows: w.Rows} }

// wait waits until a program has ended, and sends it signals meanwhile.
func wait(ctx context.Context, cmd *exec.Cmd, c executor.Command, ended func() error) (executor.ExitStatus, error) {
	done := make(chan error, 1)
	go func() { done <- ended() }()
	kill := func(s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) } // the process may have ended
	cancelled := ctx.Done()
	for {
		select {
		case err := <-done:
			return statusOf(cmd, err)
		case name := <-c.Signals:
			if s, ok := signals[name]; ok {
				kill(s)
			}
		case <-cancelled:
			cancelled = nil
			kill(syscall.SIGHUP)
			defer time.AfterFunc(time.Second, func() { kill(syscall.SIGKILL) }).Stop()
		}
	}
}

func statusOf(cmd *exec.Cmd, err error) (executor.ExitStatus, error) {
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return executor.ExitStatus{}, err
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() {
		return executor.ExitStatus{Code: status.ExitStatus()}, nil
	}
	for name, s := range signals {
		if s == status.Signal() {
			return executor.ExitStatus{Code: 128 + int(s), Signal: name}, nil
		}
	}
	return executor.ExitStatus{Code: 128 + int(status.Signal())}, nil
}

// Dial connects to a port of this machine.
func (Local) Dial(ctx context.Context, port int) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// Listen listens on a port of this machine.
func (Local) Listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		context.AfterFunc(ctx, func() { _ = listener.Close() })
	}
	return listener, err
}

// ServeFiles serves the files of this machine.
func (l Local) ServeFiles(ctx context.Context, _ string, conn io.ReadWriter) error {
	server, err := sftp.NewServer(struct {
		io.ReadWriter
		io.Closer
	}{conn, io.NopCloser(nil)}, sftp.WithServerWorkingDirectory(l.Dir))
	if err != nil {
		return err
	}
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// ReadTar writes an archive of one file.
func (l Local) ReadTar(_ context.Context, _, path string, to io.Writer) error {
	data, err := os.ReadFile(l.abs(path))
	if err != nil {
		return err
	}
	w := tar.NewWriter(to)
	if err := w.WriteHeader(&tar.Header{Name: filepath.Base(path), Size: int64(len(data)), Mode: 0o600}); err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}

// WriteTar unpacks an archive of one file.
func (l Local) WriteTar(_ context.Context, _, path string, rename bool, from io.Reader) error {
	r := tar.NewReader(from)
	header, err := r.Next()
	if err != nil {
		return fmt.Errorf("read an archive: %w", err)
	}
	path = l.abs(path)
	if !rename {
		path = filepath.Join(path, filepath.Base(header.Name))
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func (l Local) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.Dir, path)
}
