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
	// link is the path, in the module's root, of the link that Build creates to the program.
	link = ".bin/kubernetes-for-tests"
	// keepFor is how long programs from other sources stay in the cache after their last use.
	keepFor = 7 * 24 * time.Hour
	// lockPoll is how often a process checks whether another process has finished its build.
	lockPoll = 200 * time.Millisecond
)

// ErrNeverBuilt means that this user has never built the program. The first build takes minutes.
var ErrNeverBuilt = errors.New("no Kubernetes for tests has been built; `go run ./dev/kubetest/build` does it in 5 to 9 minutes")

// Find returns the path of the program, or ErrNeverBuilt. If the cache has only a program from other sources, Find
// rebuilds it, which takes seconds. If another process is building, Find waits for it.
func Find(ctx context.Context) (string, error) {
	if path := os.Getenv(pathVariable); path != "" {
		_, err := os.Stat(path)
		return path, err
	}
	p, err := locate()
	if err != nil {
		return "", err
	}
	// `go test` does not treat the cache as an input of a test, but it does treat the link as one.
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

// Build builds the program unless it exists, and returns its path. It writes the output of the build to log.
func Build(ctx context.Context, log io.Writer) (string, error) {
	p, err := locate()
	if err != nil {
		return "", err
	}
	return p.build(ctx, log)
}

// place is the location of a program that exists or is to be built.
type place struct {
	// root is the folder of the module, and cache the folder of all programs.
	root, cache string
	// hash is the hash of the sources.
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

// use marks the program as used, so that it is not removed, and links it into the module.
func (p place) use() error {
	// The time is updated only once a day. The link's target is an input of test results, and more updates would
	// invalidate them constantly.
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
	// Several processes may do this concurrently.
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
		// The program has a temporary name until it is complete.
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

// waitForLock takes the build lock, which allows one build at a time on a machine with few processors.
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

// removeOld removes programs from other sources that no test has used for some time. Each takes about 180 MB.
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
