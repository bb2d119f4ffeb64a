package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/pflag"

	"switchyard/activities/artifacts"
	"switchyard/activities/store"
	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// sourceFlags holds the flags about the files with which the tasks of a run start.
type sourceFlags struct {
	dir   string
	limit float64
}

// add registers the flags.
func (f *sourceFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "source", "", "folder whose files each task of type shell, container or subagent starts with (default what source in the definition says)")
	flags.Float64Var(&f.limit, "source-limit-gb", 1, "largest size of that folder in GiB, with 100,000 files for each")
}

// limits returns the limits of a source.
func (f *sourceFlags) limits() (artifacts.SourceLimits, error) {
	if f.limit <= 0 {
		return artifacts.SourceLimits{}, exit.Usagef("--source-limit-gb is %g; it must be more than 0", f.limit)
	}
	whole := artifacts.DefaultSourceLimits
	return artifacts.SourceLimits{Bytes: int64(f.limit * float64(whole.Bytes)), Files: int(f.limit * float64(whole.Files))}, nil
}

// send stores the files with which the tasks of a run start, if there are any, and names them in its request. d is the definition,
// or nil if that is stored.
func (f *sourceFlags) send(ctx context.Context, sys *system, a *client.Client, d *document, req *v1.SubmitRunRequest) error {
	limits, err := f.limits()
	if err != nil {
		return err
	}
	dir := f.dir
	if said := d.source(); dir == "" && said != "" {
		dir = said
	}
	if dir == "" {
		return nil
	}
	s, err := store.OpenWith(ctx, a.URL(), store.Options{Gateways: a.Gateways()})
	if err != nil {
		return err
	}
	id, sent, err := (&artifacts.Library{Store: s}).SaveSource(ctx, dir, limits)
	local, isLocal := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, artifacts.ErrTooLarge):
		return &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("--source %s: %w", dir, err), Hint: "exclude what no task needs in .switchyardignore, or raise --source-limit-gb"}
	case errors.Is(err, artifacts.ErrInvalid):
		return &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("--source %s: %w", dir, err), Hint: "exclude it in .switchyardignore"}
	case isLocal:
		return &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("read the source %s: %w", dir, local), Hint: "--source and source in the definition name a folder that you may read"}
	case err != nil:
		return fmt.Errorf("send the files of %s: %w", dir, a.Failure(err))
	}
	req.SourceUpload = id
	fmt.Fprintf(sys.screen, "source %s: %s, %s\n", dir, words.Count(int(sent.GetFiles()), "file"), words.Size(sent.GetSize()))
	return nil
}

// source returns the folder that a definition names as its source, or "".
func (d *document) source() string {
	if d == nil || d.def.GetSource().GetDir() == "" {
		return ""
	}
	dir := d.def.GetSource().GetDir()
	if filepath.IsAbs(dir) || d.file == "stdin" {
		return dir
	}
	return filepath.Join(filepath.Dir(d.file), dir)
}
