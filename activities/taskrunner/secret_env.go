package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/secrets"
	"switchyard/activities/secrets/mask"
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

// secretEnv holds the secret variables of a dispatch. Only the executor receives the values. The zero value has none.
type secretEnv struct {
	values map[string]string
	masks  *mask.Set
	// notices are lines about the masks for the log.
	notices []string
	// fault is the answer of every member if a value could not be resolved, else nil.
	fault *v1.ExecuteResponse
}

// awaitSecrets resolves the secret variables of an attempt for all its members. It waits while the source of secrets is
// unavailable. The error is that of ctx.
func (n *Node) awaitSecrets(ctx context.Context, a *attempt) (secretEnv, error) {
	references := a.req.GetSecretEnv()
	values := make(map[string]string, len(references))
	for _, name := range slices.Sorted(maps.Keys(references)) {
		value, err := n.awaitSecret(ctx, references[name], n.requester(a))
		switch {
		case ctx.Err() != nil:
			return secretEnv{}, context.Cause(ctx)
		case err != nil:
			return secretEnv{fault: &v1.ExecuteResponse{
				State: v1.TaskFailed, Reason: v1.ReasonBadSpec, Error: fmt.Sprintf("secretEnv.%s: %v", name, err), Result: &v1.TaskResult{ExitCode: -1},
			}}, nil
		}
		values[name] = value
	}
	return newSecretEnv(values), nil
}

func newSecretEnv(values map[string]string) secretEnv {
	s := secretEnv{values: values, masks: mask.New(slices.Collect(maps.Values(values)))}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if mask.IsShort(values[name]) {
			s.notices = append(s.notices, fmt.Sprintf("the secret %s has fewer than %d characters, and is masked only where it is a whole line or a whole value", name, mask.MinLength))
		}
	}
	return s
}

// recoverSecrets returns the secret variables of an attempt that an earlier worker left, with the values that its program
// has: the source may have changed since. ok is false if they are unknown; then no output of the program may be kept.
func recoverSecrets(req *v1.ExecuteRequest, found executor.Leftover) (s secretEnv, ok bool) {
	values := make(map[string]string, len(req.GetSecretEnv()))
	for name := range req.GetSecretEnv() {
		value, ok := found.Env[name]
		if !ok {
			return secretEnv{}, false
		}
		values[name] = value
	}
	return newSecretEnv(values), true
}

func (n *Node) awaitSecret(ctx context.Context, text string, who secrets.Requester) (string, error) {
	ref, fault := secretref.Parse(text)
	if fault != nil {
		return "", fmt.Errorf("the reference %w", fault)
	}
	if n.Secrets == nil {
		return "", fmt.Errorf("node %s gives tasks no secrets", n.Name)
	}
	for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
		value, err := n.Secrets.Resolve(ctx, ref, who)
		if !errors.Is(err, secrets.ErrUnavailable) {
			return value, err
		}
		n.Logger.Debug("a secret is not available yet", "run", who.Run, "task", who.Task, "error", err)
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(pause):
		}
	}
}

func (n *Node) requester(a *attempt) secrets.Requester {
	m := &a.members[0]
	return secrets.Requester{
		Run: a.req.GetRunId(), Home: names.Home(a.req.GetRunId(), a.req.GetChain()), Chain: a.req.GetChain(),
		Task: m.name, Index: m.index, Attempt: m.attempt, Claim: m.claim, Node: n.Name,
	}
}

// env adds the secrets to the environment of a workspace and returns it.
func (s *secretEnv) env(workspace map[string]string) map[string]string {
	maps.Copy(workspace, s.values)
	return workspace
}

// failure returns the answer of a member that lacks a secret's value, or nil if none is missing.
func (s *secretEnv) failure() *v1.ExecuteResponse { return proto.CloneOf(s.fault) }

// maskError returns an error with the values of secrets masked in its text.
func (s *secretEnv) maskError(err error) error {
	if err == nil || s.masks.Text(err.Error()) == err.Error() {
		return err
	}
	return errors.New(s.masks.Text(err.Error()))
}

// maskStruct masks the values of secrets in a task's output, including names and numbers.
func (s *secretEnv) maskStruct(of *structpb.Struct) *structpb.Struct {
	if s.masks == nil || of == nil {
		return of
	}
	return s.maskValue(structpb.NewStructValue(of)).GetStructValue()
}

func (s *secretEnv) maskValue(v *structpb.Value) *structpb.Value {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return structpb.NewStringValue(s.masks.Text(kind.StringValue))
	case *structpb.Value_NumberValue:
		text := strconv.FormatFloat(kind.NumberValue, 'f', -1, 64)
		if masked := s.masks.Text(text); masked != text {
			return structpb.NewStringValue(masked)
		}
	case *structpb.Value_ListValue:
		list := &structpb.ListValue{}
		for _, item := range kind.ListValue.GetValues() {
			list.Values = append(list.Values, s.maskValue(item))
		}
		return structpb.NewListValue(list)
	case *structpb.Value_StructValue:
		fields := make(map[string]*structpb.Value, len(kind.StructValue.GetFields()))
		for name, value := range kind.StructValue.GetFields() {
			fields[s.masks.Text(name)] = s.maskValue(value)
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	}
	return v
}
