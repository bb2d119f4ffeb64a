package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"switchyard/activities/filelock"
)

const (
	// pathVariable names a program that was built elsewhere.
	pathVariable = "SWITCHYARD_TEST_KUBERNETES"
	// link is where Build leaves a link to the program, in the module's root.
	link = ".bin/kubernetes-for-tests"
	// keepFor is how long programs of other sources stay in the cache after their last use.
	keepFor = 7 * 24 * time.Hour
	// lockPoll is how often a process looks whether another one has built the program.
	lockPoll = 200 * time.Millisecond
)

// ErrNeverBuilt means that this user has built no program yet, which takes minutes the first time.
var ErrNeverBuilt = errors.New("no Kubernetes for tests has been built; `go run ./dev/kubetest/build` does it in 5 to 9 minutes")

// Find returns the path of the program, or ErrNeverBuilt. If one of another source is there, Find builds anew, which
// takes seconds; if another process is building, Find waits for it.
func Find(ctx context.Context) (string, error) {
	if path := os.Getenv(pathVariable); path != "" {
		_, err := os.Stat(path)
		return path, err
	}
	p, err := locate()
	if err != nil {
		return "", err
	}
	// What a test finds in the cache is no input of its result for `go test`, but the link is.
	_, _ = os.Stat(filepath.Join(p.root, link))
	if p.isBuilt() {
		return p.path(), p.use()
	}
	others, err := filepath.Glob(filepath.Join(p.cache, "*", "kubernetes-for-tests"))
	if err != nil {
		return "", err
	}
	lock, err := filelock.Take(p.lock())
	_, building := errors.AsType[*filelock.HeldError](err)
	if err != nil && !building {
		return "", err
	}
	if lock != nil {
		if err := lock.Release(); err != nil {
			return "", err
		}
	}
	if len(others) == 0 && !building {
		return "", ErrNeverBuilt
	}
	return p.build(ctx, io.Discard)
}

// Build builds the program unless it is built, and returns its path. It writes what the build prints to log.
func Build(ctx context.Context, log io.Writer) (string, error) {
	p, err := locate()
	if err != nil {
		return "", err
	}
	return p.build(ctx, log)
}

// place is where a program is or will be.
type place struct {
	// root is the folder of the module, and cache that of all programs.
	root, cache string
	// hash is that of the source.
	hash string
}

func locate() (place, error) {
	root, err := moduleRoot()
	if err != nil {
		return place{}, err
	}
	hash, err := sourceHash(root)
	if err != nil {
		return place{}, fmt.Errorf("hash %s: %w", folder, err)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return place{}, err
	}
	cache := filepath.Join(user, "switchyard-kubernetes")
	return place{root, cache, hash}, os.MkdirAll(cache, 0o700)
}

func (p place) path() string { return filepath.Join(p.cache, p.hash, "kubernetes-for-tests") }
func (p place) lock() string { return filepath.Join(p.cache, "build.lock") }

func (p place) isBuilt() bool {
	_, err := os.Stat(p.path())
	return err == nil
}

// use keeps the program from removal, and links it in the module.
func (p place) use() error {
	// More often would change the link's target, which is an input of test results, all the time.
	if info, err := os.Stat(p.path()); err != nil {
		return err
	} else if now := time.Now(); now.Sub(info.ModTime()) > 24*time.Hour {
		if err := os.Chtimes(p.path(), now, now); err != nil {
			return err
		}
	}
	at := filepath.Join(p.root, link)
	if target, err := os.Readlink(at); err == nil && target == p.path() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	// Several processes may do this at once.
	temporary := fmt.Sprintf("%s.%d", at, os.Getpid())
	if err := os.Symlink(p.path(), temporary); err != nil {
		return err
	}
	return os.Rename(temporary, at)
}

func (p place) build(ctx context.Context, log io.Writer) (path string, err error) {
	lock, err := p.waitForLock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if !p.isBuilt() {
		if err := os.MkdirAll(filepath.Dir(p.path()), 0o700); err != nil {
			return "", err
		}
		// A name of its own until it is complete.
		partial := p.path() + ".partial"
		cmd := exec.CommandContext(ctx, filepath.Join(p.root, folder, "build.sh"), partial)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("build %s: %w", folder, err)
		}
		if err := os.Rename(partial, p.path()); err != nil {
			return "", err
		}
		if err := p.removeOld(); err != nil {
			return "", err
		}
	}
	return p.path(), p.use()
}

// waitForLock takes the lock of builds, of which a machine with few processors has one at a time.
func (p place) waitForLock(ctx context.Context) (*filelock.Lock, error) {
	for {
		lock, err := filelock.Take(p.lock())
		if _, held := errors.AsType[*filelock.HeldError](err); !held {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another build of %s: %w", folder, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// removeOld removes programs of other sources that no test has used for some time. Each has some 180 MB.
func (p place) removeOld() error {
	others, err := filepath.Glob(filepath.Join(p.cache, "*", "kubernetes-for-tests"))
	if err != nil {
		return err
	}
	for _, other := range others {
		info, err := os.Stat(other)
		if err == nil && time.Since(info.ModTime()) > keepFor {
			err = os.RemoveAll(filepath.Dir(other))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
