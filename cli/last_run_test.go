package cli

import (
	"strings"
	"testing"

	"switchyard/cli/exit"
)

// TestLastIsTheRunThatTheGatewayNames checks that commands that show a run and commands that change one give "last" the same
// meaning, whatever was started from this machine, and change nothing if the gateway knows no such run.
func TestLastIsTheRunThatTheGatewayNames(t *testing.T) {
	f := fake(t)
	for _, args := range []string{
		"runs get last", "runs watch last", "runs logs last", "runs events last", "runs explain last build", "runs instances last build",
		"runs cancel last", "runs retry last", "runs rerun last", "runs kill last build", "runs exec last build", "runs cp last/build:a a",
		"dlq purge last --all", "dlq retry last --all", "env create tools --from last build",
	} {
		run(t, append(strings.Fields(args), "--gateway", f.url)...).ends(t, exit.CodeUsage, errNoRun.Error())
	}
	if len(f.asked) > 0 || len(f.cancelled) > 0 {
		t.Errorf("sent %v %v", f.asked, f.cancelled)
	}
	completed(f)
	for _, args := range []string{"runs cancel last", "runs logs last"} {
		if got := run(t, append(strings.Fields(args), "--gateway", f.url)...); got.code != 0 || !strings.Contains(got.stderr, "the last run is nightly-4g5h6jkm\n") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if f.cancelled[0].GetId() != fakeRun || f.logged[0].GetId() != fakeRun {
		t.Errorf("sent %v %v", f.cancelled, f.logged)
	}
}
