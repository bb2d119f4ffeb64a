package taskrunner

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/secrets/mask"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// secretEnv holds the secret variables of a dispatch. Only the executor receives the values. The zero value has none.
type secretEnv struct {
	values map[string]string
	masks  *mask.Set
	// notices are lines about the masks for the log.
	notices []string
	// fault is the answer of every member if a value could not be resolved, else nil.
	fault *historyv1.ExecuteResponse
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
func recoverSecrets(req *historyv1.ExecuteRequest, found executor.Leftover) (s secretEnv, ok bool) {
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

// env adds the secrets to the environment of a workspace and returns it.
func (s *secretEnv) env(workspace map[string]string) map[string]string {
	maps.Copy(workspace, s.values)
	return workspace
}

// failure returns the answer of a member that lacks a secret's value, or nil if none is missing.
func (s *secretEnv) failure() *historyv1.ExecuteResponse { return proto.CloneOf(s.fault) }
