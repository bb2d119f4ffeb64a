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
		runWith(t, env, "", append(args, "--gateway", f.url)...).ends(t, exit.CodeUsage, "switchyard runs list")
	}
	for _, args := range [][]string{{"submit"}, {"run", "--detach"}, {"run"}} {
		env["XDG_STATE_HOME"] = t.TempDir()
		runWith(t, env, hello, append(args, "-", "--gateway", f.url)...).ends(t, exit.CodeDone, "")
		before := len(f.cancelled)
		got := runWith(t, env, "", "runs", "cancel", "last", "--gateway", f.url)
		if len(f.cancelled) == before || f.cancelled[before].GetId() != "nightly-4g5h6jkm" || !strings.Contains(got.stderr, "the last run is nightly-4g5h6jkm\n") {
			t.Errorf("after %v: cancelled %v, %+v", args, f.cancelled, got)
		}
		other := fake(t)
		runWith(t, env, "", "runs", "cancel", "last", "--gateway", other.url).ends(t, exit.CodeUsage, "")
		f.cancel = make(chan struct{})
		f.cancelled = nil
	}
}
