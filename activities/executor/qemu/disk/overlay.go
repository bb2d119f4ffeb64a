package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"switchyard/activities/executor"
)

// Base is an image that overlays are based on. It is never written to.
type Base struct {
	// Path is the absolute path of the file.
	Path string
	// Format is FormatQcow2 or FormatRaw.
	Format string
	// VirtualSize is the size of the disk in bytes.
	VirtualSize int64
	// isCached marks an image that the node has downloaded and may remove.
	isCached bool
}

// exitCannotRun is the exit code of a task that cannot start.
const exitCannotRun = 126

// badSpec returns the error for a spec that no attempt can start with.
func badSpec(err error) error {
	return &executor.StartError{ExitCode: exitCannotRun, BadSpec: true, Err: err}
}

// overlayLimit bounds what qemu-img writes for an overlay: the tables for a disk of 1 PiB are smaller.
const overlayLimit = 1 << 30

// CreateOverlay creates the disk of a machine at path, which must not exist: a qcow2 overlay on a base, with a virtual
// size of size bytes, or the size of the base if size is 0. The base must exist as long as the overlay does. A cached
// base gets a hard link beside the overlay, so that the cache may remove its own name.
func CreateOverlay(ctx context.Context, path string, base Base, size int64) (err error) {
	if size == 0 {
		size = base.VirtualSize
	}
	if size < base.VirtualSize {
		return badSpec(fmt.Errorf("disk size %s is smaller than image %s (%s); omit the size, or increase it",
			formatSize(size), base.Path, formatSize(base.VirtualSize)))
	}
	folder := filepath.Dir(path)
	if err := checkRoom(folder, 0); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("create disk %s: %w", path, os.ErrExist)
	}
	backing := base.Path
	if base.isCached {
		// The link is relative to the overlay, as the name of the backing file is.
		backing = "base" + filepath.Ext(base.Path)
		if err := os.Link(base.Path, filepath.Join(folder, backing)); err != nil {
			return fmt.Errorf("create disk %s: %w; the cache of images and the folder of the machine must be on one file system", path, err)
		}
	}
	_, err = run(ctx, shortCall, overlayLimit, "create", "-q", "-f", FormatQcow2, "-b", backing, "-F", base.Format, path, fmt.Sprint(size))
	if err == nil {
		return nil
	}
	err = fmt.Errorf("create disk %s: %w", path, err)
	leftover := []string{path}
	if base.isCached {
		leftover = append(leftover, filepath.Join(folder, backing))
	}
	for _, name := range leftover {
		if removal := os.Remove(name); !errors.Is(removal, os.ErrNotExist) {
			err = errors.Join(err, removal)
		}
	}
	return err
}

const (
	// flattenLimit bounds the conversion of a disk. It suffices for 1 TiB at 50 MB/s.
	flattenLimit = 6 * time.Hour
	// flattenProgress is how often a conversion reports progress.
	flattenProgress = 10 * time.Second
	// partialSuffix is the suffix of incomplete files.
	partialSuffix = ".partial"
)

// Flatten writes the disk of a machine, which may be running, to the file to, which must not exist, as a qcow2 image
// without a base. The image is a snapshot: a running machine may be in the middle of a write. It is not compressed,
// because compression would take ten times as long. say receives lines of progress.
func Flatten(ctx context.Context, overlay, to string, say func(string)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make an image of disk %s: %w", overlay, err)
		}
	}()
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s: %w", to, os.ErrExist)
	}
	used, virtual, err := chainSize(ctx, overlay)
	if err != nil {
		return err
	}
	if err := checkRoom(filepath.Dir(to), used); err != nil {
		return err
	}
	partial := to + partialSuffix
	stop := reportGrowth(partial, used, say)
	defer stop()
	// Tables and rounding add to the size of the data.
	most := virtual + virtual>>6 + overlayLimit
	if _, err := run(ctx, flattenLimit, most, "convert", "-U", "-f", FormatQcow2, "-O", FormatQcow2, overlay, partial); err != nil {
		if removal := os.Remove(partial); !errors.Is(removal, os.ErrNotExist) {
			err = errors.Join(err, removal)
		}
		return err
	}
	return os.Rename(partial, to)
}

// reportGrowth reports how much of a file is written until stop is called.
func reportGrowth(path string, whole int64, say func(string)) (stop func()) {
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(flattenProgress)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
			if info, err := os.Stat(path); err == nil {
				say(fmt.Sprintf("%s of some %s written", formatSize(info.Size()), formatSize(whole)))
			}
		}
	}()
	return func() { close(ended); <-stopped }
}
