package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/pkg/sftp"
	"github.com/spf13/cobra"

	"switchyard/activities/executor"
	"switchyard/cli/archive"
	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/terminal"
	"switchyard/drawing/words"
)

func newRunsCp(sys *system) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "cp SOURCE TARGET",
		Short: "Copy files to or from a running task",
		Long: `Copies a file, or a folder with everything in it. One side is RUN/TASK:PATH, or RUN:PATH
if only one task is running; the other side is a local path, or - for a tar archive on
standard output or input. A relative PATH starts in the folder in which the task's
program was started.

As with docker cp, if TARGET is an existing folder, SOURCE is copied into it under its own
name, else TARGET is the new name; SOURCE/. is the contents of a folder. Files appear
under their names only when they are complete. Links stay links; those that lead outside
SOURCE are reported and left out, and the exit code is then 1.`,
		Example: `  switchyard runs cp last/train:checkpoints ./checkpoints
  switchyard runs cp data.csv 'last/each[3]:/tmp/'
  switchyard runs cp last/train:/var/log - | tar -t`,
		Args: arguments(2, 2, "SOURCE and TARGET, or one of them,"),
	}
	cmd.Flags().StringVarP(&user, "user", "u", "", "user who reads or writes the files, in a container or a vps (default the user of its program)")
	clientFlag(cmd)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		from, err := parseCopySide(args[0])
		if err != nil {
			return err
		}
		to, err := parseCopySide(args[1])
		if err != nil {
			return err
		}
		c := &copying{sys: sys, user: user}
		side := from
		switch {
		case from.isRemote() && to.isRemote():
			return exit.Usagef("one side must be a local path; between two tasks, copy from one to - and from - to the other")
		case to.isRemote():
			side = to
		case !from.isRemote():
			return exit.Usagef("neither side names a task; write one as RUN/TASK:PATH")
		}
		sessions := a.Sessions()
		defer sessions.Close()
		target, err := newSessionTarget(ctx, sys, a, sessions, side.target)
		if err != nil {
			return err
		}
		c.inside = target.inside()
		c.progress = newCopyProgress(sys)
		defer c.progress.end()
		if to.isRemote() {
			err = c.upload(ctx, from, to)
		} else {
			err = c.download(ctx, from, to)
		}
		return c.outcome(ctx, err)
	})
	return cmd
}

// copying is a copy in progress.
type copying struct {
	sys      *system
	inside   executor.Inside
	user     string
	progress *copyProgress
	skipped  int
}

// maxSkippedLines bounds how many skipped files are listed.
const maxSkippedLines = 20

func (c *copying) skip(name, why string) {
	if c.skipped++; c.skipped <= maxSkippedLines {
		fmt.Fprintf(c.sys.screen, "left out %s: %s\n", words.OneLine(name), words.OneLine(why))
	}
}

// outcome returns the error of the command.
func (c *copying) outcome(ctx context.Context, err error) error {
	c.progress.end()
	if c.skipped > maxSkippedLines {
		fmt.Fprintf(c.sys.screen, "left out %d more\n", c.skipped-maxSkippedLines)
	}
	refused, isRefused := errors.AsType[*executor.Refusal](err)
	_, ours := errors.AsType[*exit.Error](err)
	switch {
	case err == nil && c.skipped > 0:
		return exit.Silent(exit.CodeNotDone)
	case err == nil || ours || ctx.Err() != nil:
		return err
	case isRefused:
		return &exit.Error{Code: exit.CodeNotDone, Err: errors.New(words.OneLine(refused.Error()))}
	case isLost(err):
		return &exit.Error{Code: exit.CodeSystem, Err: errors.New(words.OneLine(err.Error())), Hint: "complete files are kept; repeat the command for the rest"}
	}
	return &exit.Error{Code: exit.CodeNotDone, Err: errors.New(words.OneLine(err.Error()))}
}

// download copies from a task.
func (c *copying) download(ctx context.Context, from, to copySide) error {
	if to.stream {
		if terminal.IsTerminal(c.sys.rawStdout) {
			return exit.Usagef("an archive is not written to a terminal; redirect standard output, as in `... - | tar -t`")
		}
		return c.inside.ReadTar(ctx, c.user, from.path, io.MultiWriter(c.sys.rawStdout, c.progress))
	}
	name := from.name()
	place, err := archive.TargetOf(to.path, name, from.contents())
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := c.inside.ReadTar(ctx, c.user, from.path, io.MultiWriter(w, c.progress))
		_ = w.CloseWithError(err) // never fails
		read <- err
	}()
	err = archive.Unpack(r, place, c.skip)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // reads the padding of the archive
	}
	_ = r.CloseWithError(errUnpacking) // never fails
	if sent := <-read; sent != nil && !errors.Is(sent, errUnpacking) && (err == nil || ctx.Err() == nil) {
		return sent
	}
	return err
}

// errUnpacking stops the sender of an archive that cannot be unpacked.
var errUnpacking = errors.New("the archive cannot be unpacked")

// upload copies to a task.
func (c *copying) upload(ctx context.Context, from, to copySide) error {
	if from.stream {
		if terminal.IsTerminal(c.sys.stdin) {
			return exit.Usagef("standard input is a terminal, not an archive; pipe one in, as in `tar -c . | ... -`")
		}
		return c.inside.WriteTar(ctx, c.user, to.path, false, io.TeeReader(c.sys.stdin, c.progress))
	}
	info, err := os.Stat(from.path)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	if from.endsInSlash() && !info.IsDir() {
		return exit.Usagef("%s is not a folder", from.path)
	}
	there, err := c.stat(ctx, to.path)
	if err != nil {
		return err
	}
	top, rename, err := c.place(from, info, to, there)
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := archive.Pack(w, from.path, top, c.skip)
		_ = w.CloseWithError(err) // never fails
		packed <- err
	}()
	err = c.inside.WriteTar(ctx, c.user, to.path, rename, io.TeeReader(r, c.progress))
	_ = r.CloseWithError(errUnpacking) // never fails
	if sent := <-packed; sent != nil && !errors.Is(sent, errUnpacking) {
		return sent
	}
	return err
}

// place returns the name of the top entry in the archive of an upload, or "" for the contents of a folder. It also
// reports whether the destination path gives the entry a new name.
func (c *copying) place(from copySide, info fs.FileInfo, to copySide, there fs.FileInfo) (top string, rename bool, err error) {
	name := from.name()
	if name == "" { // such as ".", which gets the name of the folder it stands for
		if absolute, err := filepath.Abs(from.path); err == nil {
			name = filepath.Base(absolute)
		}
	}
	switch {
	case there != nil && there.IsDir():
		if info.IsDir() && from.contents() {
			name = ""
		}
		return name, false, nil
	case there != nil && info.IsDir():
		return "", false, fmt.Errorf("%s is a file in the task, but %s is a folder", to.path, from.path)
	case there != nil && to.endsInSlash():
		return "", false, fmt.Errorf("%s is not a folder", to.path)
	case there == nil && !info.IsDir() && to.endsInSlash():
		return "", false, fmt.Errorf("there is no folder %s", to.path)
	}
	return name, true, nil
}

// stat returns the file info of a path in the task, or nil if nothing exists there.
func (c *copying) stat(ctx context.Context, path string) (fs.FileInfo, error) {
	ctx, cancel := context.WithCancel(ctx)
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		err := c.inside.ServeFiles(ctx, c.user, far)
		_ = far.Close() // never fails
		served <- err
	}()
	defer func() {
		cancel()
		_ = near.Close() // never fails
		<-served
	}()
	files, err := sftp.NewClientPipe(near, near)
	if err != nil {
		_ = near.Close() // never fails
		if refused := <-served; refused != nil {
			err = refused
		}
		served <- nil
		return nil, err
	}
	defer files.Close()
	info, err := files.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is nothing
	}
	return info, err
}
