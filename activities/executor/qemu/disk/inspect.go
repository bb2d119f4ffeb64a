package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Info describes an image.
type Info struct {
	// Format is FormatQcow2 or FormatRaw.
	Format string
	// VirtualSize is the size of the disk in bytes; ActualSize is the space that its file uses on the node.
	VirtualSize, ActualSize int64
}

// Inspect returns the properties of an image. It fails if no machine may use the file: it is no image, its format is
// neither qcow2 nor raw, it names other files, or it is encrypted.
func Inspect(ctx context.Context, path string) (Info, error) {
	info, err := inspect(ctx, path, filepath.Base(path))
	if err != nil {
		return Info{}, fmt.Errorf("image %s: %w", path, err)
	}
	return info, nil
}

// inspect inspects an image whose file may have been renamed from name.
func inspect(ctx context.Context, path, name string) (Info, error) {
	begin, size, err := readBegin(path)
	if err != nil {
		return Info{}, err
	}
	format, err := recognize(begin, name)
	if err != nil {
		return Info{}, err
	}
	info := Info{Format: format, VirtualSize: size}
	if format == FormatQcow2 {
		// The header is read first, because qemu-img would open the files that it names.
		if info.VirtualSize, err = readQcow2Header(begin, size); err != nil {
			return Info{}, err
		}
	}
	// -U: a machine may have the image open.
	out, err := run(ctx, shortCall, 0, "info", "-U", "-f", format, "--output=json", path)
	if err != nil {
		return Info{}, err
	}
	var read struct {
		VirtualSize int64  `json:"virtual-size"`
		ActualSize  int64  `json:"actual-size"`
		Backing     string `json:"backing-filename"`
		Encrypted   bool   `json:"encrypted"`
	}
	if err := json.Unmarshal(out, &read); err != nil {
		return Info{}, fmt.Errorf("read the output of %s: %w", program, err)
	}
	if read.Backing != "" || read.Encrypted || format == FormatQcow2 && read.VirtualSize != info.VirtualSize {
		return Info{}, errors.New("the header changed while it was read")
	}
	return Info{format, read.VirtualSize, read.ActualSize}, nil
}

// checkLimit bounds the check of an image, which reads all of its tables.
const checkLimit = 10 * time.Minute

// check returns an error if a qcow2 image lacks data or has data with two owners, as in a truncated file. Leaked
// clusters are harmless.
func check(ctx context.Context, path string) error {
	const leaksOnly = 3
	_, err := run(ctx, checkLimit, 0, "check", "-q", "-U", "-f", FormatQcow2, path)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == leaksOnly {
		return nil
	}
	return err
}

// readBegin returns the first bytes of a regular file, and its size.
func readBegin(path string) (begin []byte, size int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("not a disk image: not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	begin, err = io.ReadAll(io.LimitReader(file, beginSize))
	return begin, info.Size(), err
}
