package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"switchyard/activities/secrets"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/secretref"
)

// SecretSource resolves secrets. It may be called from several goroutines at once.
type SecretSource interface {
	// Resolve returns the value of a secret for an attempt. An error never contains a value. The caller retries on an
	// error that wraps secrets.ErrUnavailable; any other error fails the attempt.
	Resolve(ctx context.Context, ref secretref.Reference, who secrets.Requester) (string, error)
}

// secretReader resolves the secret variables of a node's attempts. It is safe for concurrent use.
type secretReader struct {
	source SecretSource // nil if the node gives tasks no secrets
	node   string
	logger *slog.Logger
}

// secretReader returns the reader of the secrets of the node's attempts.
func (n *Node) secretReader() secretReader { return secretReader{n.Secrets, n.Name, n.Logger} }

// awaitSecrets resolves the secret variables of an attempt for all its members. It waits while the source of secrets is
// unavailable. The error is that of ctx.
func (r secretReader) awaitSecrets(ctx context.Context, req *historyv1.ExecuteRequest, first *member) (secretEnv, error) {
	references := req.GetSecretEnv()
	values := make(map[string]string, len(references))
	for _, name := range slices.Sorted(maps.Keys(references)) {
		value, err := r.awaitSecret(ctx, references[name], r.requester(req, first))
		switch {
		case ctx.Err() != nil:
			return secretEnv{}, context.Cause(ctx)
		case err != nil:
			return secretEnv{fault: &historyv1.ExecuteResponse{
				State: v1.TaskFailed, Reason: v1.ReasonBadSpec, Error: fmt.Sprintf("secretEnv.%s: %v", name, err), Result: &v1.TaskResult{ExitCode: -1},
			}}, nil
		}
		values[name] = value
	}
	return newSecretEnv(values), nil
}

func (r secretReader) awaitSecret(ctx context.Context, text string, who secrets.Requester) (string, error) {
	ref, fault := secretref.Parse(text)
	if fault != nil {
		return "", fmt.Errorf("the reference %w", fault)
	}
	if r.source == nil {
		return "", fmt.Errorf("node %s gives tasks no secrets", r.node)
	}
	for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
		value, err := r.source.Resolve(ctx, ref, who)
		if !errors.Is(err, secrets.ErrUnavailable) {
			return value, err
		}
		r.logger.Debug("a secret is not available yet", "run", who.Run, "task", who.Task, "error", err)
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(pause):
		}
	}
}

func (r secretReader) requester(req *historyv1.ExecuteRequest, m *member) secrets.Requester {
	return secrets.Requester{
		Run: req.GetRunId(), Home: names.Home(req.GetRunId(), req.GetChain()), Chain: req.GetChain(),
		Task: m.name, Index: m.index, Attempt: m.attempt, Claim: m.claim, Node: r.node,
	}
}
