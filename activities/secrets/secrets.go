package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"switchyard/workflows/secretref"
)

// MaxBytes is the maximum length of a secret's value. The value becomes an environment variable, which Linux limits to
// 128 KiB.
const MaxBytes = 64 << 10

// ErrUnavailable marks an error of a Store after which the same request may succeed later. Any other error is final.
var ErrUnavailable = errors.New("the store of secrets is not available")

// Requester identifies the attempt that a secret is for.
type Requester struct {
	// Run is the id of the run, Home its name in the keys of the store, and Chain the id of its chain of executions.
	Run, Home, Chain string
	// Task is the name of the task or of the instance, such as "each[3]". Index is the number of the instance, or -1 for
	// a task.
	Task  string
	Index int32
	// Attempt counts from 0. Claim is the number of the dispatch.
	Attempt, Claim int32
	// Node is the name of the node that runs the attempt.
	Node string
}

// ReleaseRequest requests the value of a stored secret for an attempt in progress.
type ReleaseRequest struct {
	Requester
	// Name is the name of the stored secret.
	Name string
}

// Store releases the values of stored secrets. Implementations must be safe for concurrent use.
type Store interface {
	// Value returns the value of a secret. An error names the secret and never contains a value. The caller retries an
	// error that wraps ErrUnavailable until the attempt's time to start has passed; any other error fails the attempt.
	Value(ctx context.Context, req ReleaseRequest) (string, error)
}

// Resolver resolves the secret references of attempts on one node. It is safe for concurrent use.
type Resolver struct {
	// Allow determines which files and variables of the node tasks may use.
	Allow Allowlist
	// Store releases stored secrets. It is nil if there are none.
	Store Store
	// Getenv looks up a variable in the worker's environment, like os.LookupEnv.
	Getenv func(name string) (string, bool)
}

// Resolve returns the value of a secret. An error names the reference and never contains a value; see ErrUnavailable.
func (r *Resolver) Resolve(ctx context.Context, ref secretref.Reference, who Requester) (string, error) {
	value, err := r.read(ctx, ref, who)
	switch {
	case err != nil:
		return "", fmt.Errorf("secret %s: %w", ref, err)
	case len(value) > MaxBytes:
		return "", fmt.Errorf("secret %s has %d bytes; the value of a secret may have %d", ref, len(value), MaxBytes)
	case strings.ContainsRune(value, 0):
		return "", fmt.Errorf("secret %s contains a NUL character, which no variable can; encode its value, for instance in base64", ref)
	case !utf8.ValidString(value):
		return "", fmt.Errorf("secret %s is not valid UTF-8; encode its value, for instance in base64", ref)
	}
	return value, nil
}

func (r *Resolver) read(ctx context.Context, ref secretref.Reference, who Requester) (string, error) {
	switch ref.Kind {
	case secretref.Store:
		if r.Store == nil {
			return "", fmt.Errorf("node %s has no store of secrets", who.Node)
		}
		return r.Store.Value(ctx, ReleaseRequest{Requester: who, Name: ref.Name})
	case secretref.File:
		if err := r.allowed(ref, who); err != nil {
			return "", err
		}
		return readFile(ref.Name)
	case secretref.Env:
		if err := r.allowed(ref, who); err != nil {
			return "", err
		}
		value, ok := r.Getenv(ref.Name)
		if !ok {
			return "", fmt.Errorf("the worker of node %s has no variable %s in its environment", who.Node, ref.Name)
		}
		return value, nil
	}
	return "", errors.New("references of this kind are not supported here")
}

func (r *Resolver) allowed(ref secretref.Reference, who Requester) error {
	if r.Allow.Allows(ref) {
		return nil
	}
	return fmt.Errorf("node %s does not allow it; start its worker with --allow-secret %q, or use a stored secret", who.Node, ref)
}

// readFile returns the content of a file without the final newline that editors add.
func readFile(path string) (string, error) {
	// O_NONBLOCK: opening a named pipe must not block the attempt.
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return "", reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", reason(err)
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file")
	case info.Size() > MaxBytes+2:
		return "", fmt.Errorf("the file has %d bytes; the value of a secret may have %d", info.Size(), MaxBytes)
	}
	// A file that grows meanwhile exceeds the limit, and Resolve reports that.
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+3))
	if err != nil {
		return "", reason(err)
	}
	value, cut := strings.CutSuffix(string(data), "\n")
	if cut {
		value = strings.TrimSuffix(value, "\r")
	}
	return value, nil
}

// reason returns the cause of a file error without the path, which the message already contains.
func reason(err error) error {
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return failed.Err
	}
	return err
}
