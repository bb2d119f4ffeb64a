package cli

import (
	"strings"
	"testing"

	"switchyard/cli/exit"
)

// TestLastRunOfAChangingCommandIsMine checks that "last" in a command that changes a run means the last run
// that this user started here, never a run of another user.
func TestLastRunOfAChangingCommandIsMine(t *testing.T) {
	f := fake(t)
	completed(f)
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	for _, args := range [][]string{{"runs", "cancel", "last"}, {"runs", "retry", "last"}, {"runs", "rerun", "last"}, {"runs", "kill", "last", "build"}, {"dlq", "purge", "last", "--all"}} {
		got := runWith(t, env, "", append(args, "--gateway", f.url)...)
		if got.code != exit.CodeUsage || !strings.Contains(got.stderr, "switchyard runs list") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	for _, args := range [][]string{{"submit"}, {"run", "--detach"}, {"run"}} {
		env["XDG_STATE_HOME"] = t.TempDir()
		if got := runWith(t, env, hello, append(args, "-", "--gateway", f.url)...); got.code != exit.CodeDone {
			t.Fatalf("%+v", got)
		}
		before := len(f.cancelled)
		got := runWith(t, env, "", "runs", "cancel", "last", "--gateway", f.url)
		if len(f.cancelled) == before || f.cancelled[before].GetId() != "nightly-4g5h6jkm" || !strings.Contains(got.stderr, "the last run is nightly-4g5h6jkm\n") {
			t.Errorf("after %v: cancelled %v, %+v", args, f.cancelled, got)
		}
		other := fake(t)
		if got := runWith(t, env, "", "runs", "cancel", "last", "--gateway", other.url); got.code != exit.CodeUsage {
			t.Errorf("on another gateway: %+v", got)
		}
		f.cancel = make(chan struct{})
		f.cancelled = nil
	}
}
