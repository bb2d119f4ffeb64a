package flight

import (
	"testing"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// Tasks wait for the attempts that the previous generation left behind, and say for which.
func TestAbandonedAttemptsEndFirst(t *testing.T) {
	t.Parallel()
	old := []*historyv1.AwaitAnswerRequest{
		{Attempt: &historyv1.ExecuteRequest{Task: "build", Node: "red", Index: proto.Int32(3)}},
		{Attempt: &historyv1.ExecuteRequest{Task: "lint", Node: "blue"}},
	}
	p := begin(t, tasks("a"))
	p.fly(p.Restore(&historyv1.RunState{Abandoned: old}))
	for _, want := range []string{"waits for the old attempt of build[3] on red to end, and for 1 more", "waits for the old attempt of lint on blue to end"} {
		if why := p.WaitText(0); why != want || !p.HasAbandoned() {
			t.Errorf("it waits because %q, want %q", why, want)
		}
		c := &historyv1.RunState{}
		if p.Save(c); len(c.GetAbandoned()) != len(p.Abandoned()) {
			t.Errorf("%d attempts are handed over", len(c.GetAbandoned()))
		}
		p.fly(p.AbandonedEnded(p.Abandoned()[0]))
		p.heard("an attempt has ended", "Wake")
	}
	if why := p.WaitText(0); p.HasAbandoned() || why == "" {
		t.Errorf("it waits because %q", why)
	}
}
