package main

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/pgzip"
)

// tarball writes the archive of a platform and returns its name.
func (r release) tarball(b binary) (name string, err error) {
	items, err := r.content(b)
	if err != nil {
		return "", err
	}
	name = r.name(".tar.gz", b.system, b.architecture)
	out, err := os.Create(filepath.Join(r.output, name))
	if err != nil {
		return "", err
	}
	defer out.Close()
	packed := pgzip.NewWriter(out)
	w := tar.NewWriter(packed)
	folder := strings.TrimSuffix(name, ".tar.gz")
	for _, it := range items {
		if it.archived == "" {
			continue
		}
		if err := r.archive(w, it.from, folder+"/"+it.archived, it.mode|0o444); err != nil {
			return "", fmt.Errorf("write %s: %w", name, err)
		}
	}
	for _, c := range []io.Closer{w, packed, out} {
		if err := c.Close(); err != nil {
			return "", fmt.Errorf("write %s: %w", name, err)
		}
	}
	return name, nil
}

// archive adds a file to an archive.
func (r release) archive(w *tar.Writer, from, to string, mode os.FileMode) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: int64(mode), Size: info.Size(), ModTime: r.time, Format: tar.FormatPAX}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
