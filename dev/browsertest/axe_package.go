package browsertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"switchyard/activities/filelock"
	"switchyard/dev/testneeds"
)

const (
	// axeVersion is the version of axe-core, and axeDigest the SHA-512 of its package.
	axeVersion = "4.14.1"
	axeDigest  = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
	// axeFile is the path of the script in the package.
	axeFile = "package/axe.min.js"
	// axeLimit bounds a download, which usually takes 2 s.
	axeLimit = 5 * time.Minute
)

// axePath returns the path of axe.min.js. npm downloads it once per machine, into the user's cache folder.
func axePath(t testing.TB) string {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(user, "switchyard-axe")
	path := filepath.Join(cache, "axe-"+axeVersion+".min.js")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		testneeds.Missing(t, "npm is not installed, and axe-core is not in %s", cache)
	}
	ctx, cancel := context.WithTimeout(t.Context(), axeLimit)
	defer cancel()
	if err := fetchAxe(ctx, npm, cache, path); err != nil {
		testneeds.Missing(t, "fetch axe-core %s: %v", axeVersion, err)
	}
	return path
}

// fetchAxe downloads the package into a folder of the cache, and moves its script to path.
func fetchAxe(ctx context.Context, npm, cache, path string) (err error) {
	lock, err := waitForLock(ctx, filepath.Join(cache, "fetch.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	work, err := os.MkdirTemp(cache, "fetch-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	cmd := exec.CommandContext(ctx, npm, "pack", "axe-core@"+axeVersion, "--pack-destination", work)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack: %w\n%s", err, out)
	}
	archive, err := os.ReadFile(filepath.Join(work, "axe-core-"+axeVersion+".tgz"))
	if err != nil {
		return err
	}
	if sum := sha512.Sum512(archive); base64.StdEncoding.EncodeToString(sum[:]) != axeDigest {
		return errors.New("the digest of the package differs from the one in axe_package.go")
	}
	script, err := unpack(archive, axeFile)
	if err != nil {
		return err
	}
	whole := filepath.Join(work, "axe.min.js")
	if err := os.WriteFile(whole, script, 0o600); err != nil {
		return err
	}
	return os.Rename(whole, path)
}

// waitForLock waits until no other process holds a lock, and takes it.
func waitForLock(ctx context.Context, path string) (*filelock.Lock, error) {
	for {
		lock, err := filelock.Take(path)
		var held *filelock.HeldError
		if !errors.As(err, &held) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(poll):
		}
	}
}

// unpack returns the content of a file in a gzipped tar archive.
func unpack(archive []byte, name string) ([]byte, error) {
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", name, err)
		}
		if header.Name == name {
			return io.ReadAll(r)
		}
	}
}
