package shell

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/inside"
	"switchyard/activities/executor/shell/procfs"
)

// Enter returns the inside of the attempt that runs under an id. Programs in it belong to the attempt: they share its limits,
// sandbox, environment and user, and end with it.
func (e *Executor) Enter(_ context.Context, id string) (executor.Inside, error) {
	r := e.steered.find(id)
	if r == nil || r.isEnding() {
		return nil, executor.ErrNotRunning
	}
	stat, err := procfs.Read(strconv.Itoa(r.process.Pid))
	// The signal reaches the attempt's own process or fails, so the PID was not another process's when it was read.
	if err != nil || stat.Zombie || r.process.Signal(syscall.Signal(0)) != nil {
		return nil, executor.ErrNotRunning
	}
	p := inside.Process{PID: stat.PID, Start: stat.Start, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Dir: r.program.dir}
	if p.Dir == "" {
		if p.Dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	if r.program.sandbox {
		p.UID, p.GID = uint32(r.tree.box.user.id), uint32(r.tree.box.user.id)
	} else if groups, err := os.Getgroups(); err == nil {
		for _, g := range groups {
			p.Groups = append(p.Groups, uint32(g))
		}
	}
	return &entered{executor: e, attempt: r, process: p}, nil
}

// entered is the inside of an attempt.
type entered struct {
	executor *Executor
	attempt  *running
	process  inside.Process
}

// checkUser refuses any user other than the attempt's.
func (in *entered) checkUser(user string) error {
	if user == "" || user == strconv.Itoa(int(in.process.UID)) {
		return nil
	}
	return &executor.Refusal{Text: fmt.Sprintf("a shell task runs as a single user and cannot be entered as %q", user)}
}

// Dial connects to a port of the attempt. Without a sandbox, or with the node's network in it, that is a port of the node.
func (in *entered) Dial(ctx context.Context, port int) (net.Conn, error) {
	return in.process.Dial(ctx, port)
}

// Listen accepts connections on a port of the attempt.
func (in *entered) Listen(ctx context.Context, port int) (net.Listener, error) {
	return in.process.Listen(ctx, port)
}

// ServeFiles serves the files that the attempt sees.
func (in *entered) ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error {
	if err := in.checkUser(user); err != nil {
		return err
	}
	return in.process.ServeFiles(ctx, conn)
}

// ReadTar writes files of the attempt to an archive.
func (in *entered) ReadTar(ctx context.Context, user, path string, to io.Writer) error {
	if err := in.checkUser(user); err != nil {
		return err
	}
	return in.process.ReadTar(ctx, path, to)
}

// WriteTar unpacks an archive in the attempt.
func (in *entered) WriteTar(ctx context.Context, user, path string, rename bool, from io.Reader) error {
	if err := in.checkUser(user); err != nil {
		return err
	}
	return in.process.WriteTar(ctx, path, rename, from)
}

// command returns the program for a Command, based on the environment of the attempt's program.
func (in *entered) command(c executor.Command) (program, error) {
	if err := in.checkUser(c.User); err != nil {
		return program{}, err
	}
	p := program{sandbox: in.attempt.program.sandbox, dir: in.process.Dir}
	if c.Dir != "" {
		if p.dir = c.Dir; !filepath.IsAbs(p.dir) {
			p.dir = filepath.Join(in.process.Dir, p.dir)
		}
	}
	if hasNUL(p.dir) || hasNUL(c.Line) || slices.ContainsFunc(c.Args, hasNUL) {
		return program{}, cannotRun(fmt.Errorf("the command contains a NUL character, which a program's arguments cannot hold"))
	}
	if !p.sandbox { // a sandbox has other directories
		if info, err := os.Stat(p.dir); err != nil {
			return program{}, cannotRun(fmt.Errorf("working directory: %w", err))
		} else if !info.IsDir() {
			return program{}, cannotRun(fmt.Errorf("working directory: %s is not a directory", p.dir))
		}
	}
	var err error
	if p.environ, err = in.environ(c, p.dir); err != nil {
		return program{}, cannotRun(err)
	}
	if len(c.Args) > 0 {
		p.argv = c.Args
		if p.argv[0] == "" {
			return program{}, cannotRun(fmt.Errorf("the name of the program is empty"))
		}
		p.path, err = lookPath(p.argv[0], p.dir, p.environ)
		return p, err
	}
	p.path = loginShell(p.environ)
	if p.argv = []string{"-" + filepath.Base(p.path)}; c.Line != "" {
		p.argv = []string{filepath.Base(p.path), "-c", c.Line}
	}
	return p, nil
}

// environ returns the environment of the attempt's program with the command's variables.
func (in *entered) environ(c executor.Command, dir string) ([]string, error) {
	added := map[string]string{}
	for key, value := range c.Env {
		added[key] = value
	}
	if _, has := added["TERM"]; c.Terminal != nil && c.Terminal.Type != "" && !has {
		added["TERM"] = c.Terminal.Type
	}
	var before []string
	for _, entry := range in.attempt.program.environ {
		key, _, _ := strings.Cut(entry, "=")
		if key != procfs.Marker && key != "PWD" {
			before = append(before, entry)
		}
	}
	// The marker is the process tree's: an attempt of a batch has the marker of the batch.
	return environment(before, added, dir, in.attempt.attempt.ID)
}

// loginShell returns the shell named by an environment, or a default.
func loginShell(environ []string) string {
	for _, path := range []string{lookup(environ, "SHELL"), "/bin/bash"} {
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	return "/bin/sh"
}
