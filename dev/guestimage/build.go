package guestimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"switchyard/activities/filelock"
	"switchyard/dev/testneeds"
)

const (
	// buildLimit bounds a build, which takes 10 s, half of it for the download of the kernel.
	buildLimit = 10 * time.Minute
	// lockPoll is how often a process checks whether another process has finished its build.
	lockPoll = 200 * time.Millisecond
	// keepFor is how long images from other inputs stay in the cache.
	keepFor = 7 * 24 * time.Hour
)

// Build returns the path of the image. Tests must not write to the image; a test boots an overlay. The image is built
// once per machine, in the user's cache folder. Build skips the test if a program that it needs is missing.
func Build(t testing.TB) string { return find(t, "guest.qcow2") }

// BuildDeaf returns the path of an image that ignores the power button and otherwise equals that of Build.
func BuildDeaf(t testing.TB) string { return find(t, "deaf.qcow2") }

// find returns the path of an image.
func find(t testing.TB, name string) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		testneeds.Missing(t, "the virtual machine image for tests can only be built on Linux on amd64")
	}
	programs := needPrograms(t)
	files, err := recipe()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := digestOf(files, programs)
	if err != nil {
		t.Fatal(err)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(user, "switchyard-guestimage")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, digest)
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	if err := ensure(ctx, cache, folder, files); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}

// ensure builds the images in a folder of the cache unless they exist.
func ensure(ctx context.Context, cache, folder string, files map[string][]byte) (err error) {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	lock, err := waitForLock(ctx, filepath.Join(cache, "build.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := removeOld(cache); err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, "build-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	return build(ctx, work, folder, files)
}

// build runs the recipe in the folder work, and moves the images to folder.
func build(ctx context.Context, work, folder string, files map[string][]byte) error {
	source, disks, images := filepath.Join(work, "source"), filepath.Join(work, "disks"), filepath.Join(work, "images")
	for _, dir := range []string{disks, images} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for name, text := range files {
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o700); err != nil {
			return err
		}
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", filepath.Join(source, "build.sh"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = disks, &log, &log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the image of virtual machines for tests: %w\n%s", err, log.Bytes())
	}
	for _, name := range []string{"guest.qcow2", "deaf.qcow2"} {
		// Read-only, because a machine that writes to an image would change it for the others.
		if err := os.Chmod(filepath.Join(disks, name), 0o400); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(disks, name), filepath.Join(images, name)); err != nil {
			return err
		}
	}
	return os.Rename(images, folder)
}

// waitForLock waits for the build lock and takes it.
func waitForLock(ctx context.Context, path string) (*filelock.Lock, error) {
	for {
		lock, err := filelock.Take(path)
		if _, held := errors.AsType[*filelock.HeldError](err); !held {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another build of the image of virtual machines for tests: %w", ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// removeOld removes images from other inputs and leftovers of killed builds. The caller holds the build lock.
func removeOld(cache string) error {
	folders, err := os.ReadDir(cache)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		info, err := folder.Info()
		if err != nil || !folder.IsDir() {
			continue
		}
		killed, _ := filepath.Match("build-*", folder.Name())
		if killed || time.Since(info.ModTime()) > keepFor {
			if err := os.RemoveAll(filepath.Join(cache, folder.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
