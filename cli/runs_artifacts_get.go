package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/archive"
	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/terminal"
	"switchyard/drawing/words"
	"switchyard/workflows/names"
)

func newRunsArtifactsGet(sys *system) *cobra.Command {
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use:   "get RUN TASK [NAME]",
		Short: "Download an artifact of a task",
		Long: `Downloads the artifact NAME of a task into a new folder of that name, or into the folder
--dir; without NAME, each artifact of the task into a folder of its name below --dir.
If the task fans out, that folder has one for each completed instance, named by its
number; TASK may be a single instance, such as "each[3]". After a lost connection, the
download continues where it was.

--dir - writes a tar archive to standard output.`,
		Example: `  switchyard runs artifacts get last build
  switchyard runs artifacts get last build app --dir ./app --force
  switchyard runs artifacts get last build app --dir - | tar -t`,
		Args: arguments(2, 3, "RUN TASK"),
	}
	cmd.Flags().StringVarP(&dir, "dir", "d", "", "folder for the files, or - for a tar archive on standard output")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that exist")
	clientFlag(cmd)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		run, task, _, err := readTask(ctx, a, args[0], args[1])
		if err != nil {
			return err
		}
		left, isNamed := &artifactPage{}, len(args) > 2
		if err := left.addTask(ctx, a, run, args[1], task); err != nil {
			return err
		}
		all := left.items
		if isNamed {
			all = slices.DeleteFunc(all, func(one taskArtifact) bool { return one.GetName() != args[2] })
			if len(all) == 0 {
				return &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("task %s of run %s has left no artifact %q", args[1], run, args[2]), Hint: "`switchyard runs artifacts list " + run + " " + output.ShellWord(args[1]) + "` lists them"}
			}
		}
		if len(all) == 0 {
			return &exit.Error{Code: exit.CodeNotDone, Err: fmt.Errorf("task %s of run %s has left no artifacts; it is %s", args[1], run, task.GetState())}
		}
		g := &fetching{copying: copying{sys: sys, progress: newCopyProgress(sys)}, client: a, run: run, force: force}
		defer g.progress.end()
		if dir == "-" {
			if task.GetCount() > 0 {
				return exit.Usagef("task %s fans out; name one of its instances, such as %s", args[1], output.ShellWord(all[0].task))
			}
			if len(all) > 1 {
				return exit.Usagef("task %s has %d artifacts; name one of them", args[1], len(all))
			}
			if terminal.IsTerminal(sys.rawStdout) {
				return exit.Usagef("an archive is not written to a terminal; redirect standard output, as in `... --dir - | tar -t`")
			}
			return g.write(ctx, all[0], sys.rawStdout)
		}
		for _, one := range all {
			folder := dir
			if !isNamed || dir == "" {
				folder = filepath.Join(dir, one.GetName())
			}
			if _, number, isInstance := names.ParseInstanceName(one.task); isInstance && task.GetCount() > 0 {
				folder = filepath.Join(folder, strconv.Itoa(number))
			}
			if err := g.unpack(ctx, one, folder); err != nil {
				return g.outcome(ctx, err)
			}
		}
		return g.outcome(ctx, nil)
	})
	return cmd
}

// fetching is a download of artifacts in progress.
type fetching struct {
	copying
	client *client.Client
	run    string
	force  bool
}

// write writes an artifact as an archive.
func (g *fetching) write(ctx context.Context, a taskArtifact, w io.Writer) error {
	return g.client.Artifact(ctx, g.run, a.task, a.GetName(), io.MultiWriter(w, g.progress), func() {
		fmt.Fprintln(g.sys.screen, g.client.AwayText())
	})
}

// unpack unpacks an artifact into a folder, which is created if necessary.
func (g *fetching) unpack(ctx context.Context, a taskArtifact, folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := g.write(ctx, a, w)
		_ = w.CloseWithError(err) // never fails
		written <- err
	}()
	err := archive.Unpack(r, archive.Target{Dir: folder, New: !g.force}, g.skip)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // reads the padding of the archive
	}
	_ = r.CloseWithError(errUnpacking) // never fails
	if sent := <-written; sent != nil && !errors.Is(sent, errUnpacking) {
		return sent
	}
	if errors.Is(err, fs.ErrExist) {
		return &exit.Error{Code: exit.CodeNotDone, Err: fmt.Errorf("unpack artifact %s in %s: %s", a.GetName(), folder, words.OneLine(err.Error())), Hint: "--force replaces files that exist; --dir names another folder"}
	}
	return err
}
