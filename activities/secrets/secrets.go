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

// MaxBytes bounds the value of a secret, which becomes an environment variable; Linux limits those to 128 KiB.
const MaxBytes = 64 << 10

// ErrUnavailable is in the error of a Store that may answer the same request later. Any other error is final.
var ErrUnavailable = errors.New("the store of secrets is not available")

// Requester is the attempt that a secret is for.
type Requester struct {
	// Run is the id of the run, Home what the run has in the keys of the store, and Chain that of its executions.
	Run, Home, Chain string
	// Task is the name of the task or of the instance, such as "each[3]", and Index the number of the instance or -1.
	Task  string
	Index int32
	// Attempt counts from 0, Claim is the number of the dispatch.
	Attempt, Claim int32
	// Node is the name of the node that runs the attempt.
	Node string
}

// ReleaseRequest asks for the value of a stored secret on behalf of an attempt that is under way.
type ReleaseRequest struct {
	Requester
	// Name of the stored secret.
	Name string
}

// Store releases the values of stored secrets. It may be called from several goroutines.
type Store interface {
	// Value returns the value of a secret. An error names the secret and holds no value; one with ErrUnavailable in it is
	// tried again until the attempt's time to start is over, any other fails the attempt.
	Value(ctx context.Context, req ReleaseRequest) (string, error)
}

// Resolver resolves the references of attempts on one node. It is safe for concurrent use.
type Resolver struct {
	// Allow says which files and variables of the node tasks may name.
	Allow Allowlist
	// Store has the stored secrets; nil: there are none.
	Store Store
	// Getenv looks up a variable of the worker's environment, as os.LookupEnv does.
	Getenv func(name string) (string, bool)
}

// Resolve returns the value of a secret. The error names the reference and never holds a value; see ErrUnavailable.
func (r *Resolver) Resolve(ctx context.Context, ref secretref.Reference, who Requester) (string, error) {
	value, err := r.read(ctx, ref, who)
	switch {
	case err != nil:
		return "", fmt.Errorf("secret %s: %w", ref, err)
	case len(value) > MaxBytes:
		return "", fmt.Errorf("secret %s has %d bytes; the value of a secret may have %d", ref, len(value), MaxBytes)
	case strings.ContainsRune(value, 0):
		return "", fmt.Errorf("secret %s holds a NUL character, which no variable can; encode its value, with base64 for instance", ref)
	case !utf8.ValidString(value):
		return "", fmt.Errorf("secret %s is not valid UTF-8; encode its value, with base64 for instance", ref)
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
	return "", errors.New("references of this kind are not known here")
}

func (r *Resolver) allowed(ref secretref.Reference, who Requester) error {
	if r.Allow.Allows(ref) {
		return nil
	}
	return fmt.Errorf("node %s does not allow it; start its worker with --allow-secret %q, or use a stored secret", who.Node, ref)
}

// readFile reads a file without the one newline that editors put at its end.
func readFile(path string) (string, error) {
	// A named pipe must not hold up the attempt.
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
		return "", errors.New("it is no regular file")
	case info.Size() > MaxBytes+2:
		return "", fmt.Errorf("the file has %d bytes; the value of a secret may have %d", info.Size(), MaxBytes)
	}
	// A file that grows meanwhile is too large, and is reported so.
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

// reason returns the cause of a file error without the path, which the message has already.
func reason(err error) error {
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return failed.Err
	}
	return err
}
