package tool

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxContent bounds the total size of the files in an archive. The archive itself is smaller.
const maxContent = 1 << 30

// archiveWindow bounds the memory for packing and unpacking.
const archiveWindow = 1 << 20

// Pack returns a directory as a tar archive, compressed with zstd: regular files, directories and links with their
// permissions. It follows no links, and omits sockets, pipes, devices and anything that the worker may not read. The
// same directory gives the same archive; a missing directory counts as empty. Files may change during the call; their
// content in the archive is then unspecified. If the archive exceeds max bytes or the directory 1 GiB, the error is a
// *TooLargeError.
func Pack(dir string, max int64) ([]byte, error) {
	var packed bytes.Buffer
	bound := &bounded{w: &packed, left: max, max: max}
	compressed, err := newCompressor(bound)
	if err != nil {
		return nil, err
	}
	defer func() {
		compressed.Reset(nil) // the pooled encoder must not hold on to the archive
		compressors.Put(compressed)
	}()
	p := &packer{tar: tar.NewWriter(compressed)}
	if err := walkPath(dir, p.add); err != nil {
		_ = compressed.Close()
		return nil, err
	}
	if err := errors.Join(p.tar.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// compressors holds unused encoders, each with several MiB of buffers.
var compressors sync.Pool

func newCompressor(w io.Writer) (*zstd.Encoder, error) {
	if unused, ok := compressors.Get().(*zstd.Encoder); ok {
		unused.Reset(w)
		return unused, nil
	}
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(archiveWindow))
}

// packer writes files to an archive.
type packer struct {
	tar     *tar.Writer
	content int64
}

func (p *packer) add(e entry) error {
	header := &tar.Header{
		Name: e.path, Mode: int64(e.info.Mode().Perm()), ModTime: e.info.ModTime(), Format: tar.FormatPAX,
	}
	switch e.info.Mode().Type() {
	case 0:
		return p.addFile(e, header)
	case fs.ModeDir:
		header.Typeflag, header.Name = tar.TypeDir, e.path+"/"
		// The modification time changes whenever a file is created.
		header.ModTime = unsetTime
	case fs.ModeSymlink:
		target, err := e.dir.Readlink(e.info.Name())
		if err != nil {
			return nil // the link is gone
		}
		header.Typeflag, header.Linkname, header.ModTime = tar.TypeSymlink, target, unsetTime
	default:
		return nil
	}
	return p.tar.WriteHeader(header)
}

func (p *packer) addFile(e entry, header *tar.Header) error {
	f, err := e.dir.OpenFile(e.info.Name(), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil // the file is gone, or the worker may not read it
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !os.SameFile(info, e.info) {
		return nil // the file was replaced
	}
	if p.content += info.Size(); p.content > maxContent {
		return &TooLargeError{What: fmt.Sprintf("the files of the agent hold more than %d MiB", maxContent>>20)}
	}
	header.Typeflag, header.Size, header.ModTime, header.Mode = tar.TypeReg, info.Size(), info.ModTime(), int64(info.Mode().Perm())
	if err := p.tar.WriteHeader(header); err != nil {
		return err
	}
	n, err := io.Copy(p.tar, io.LimitReader(f, info.Size()))
	if err != nil && isTooLarge(err) {
		return err
	}
	// The file was truncated in the meantime, or cannot be read.
	_, err = io.CopyN(p.tar, zeros{}, info.Size()-n)
	return err
}

type zeros struct{}

// Read fills p with zeros.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func isTooLarge(err error) bool {
	_, ok := errors.AsType[*TooLargeError](err)
	return ok
}

// bounded is a writer that accepts a limited number of bytes.
type bounded struct {
	w         io.Writer
	left, max int64
}

// Write fails with a *TooLargeError beyond the limit.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, &TooLargeError{What: fmt.Sprintf("the work directory of the agent has more than %d MiB, compressed", b.max>>20)}
	}
	return b.w.Write(p)
}
