package workers

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/taskrunner"
	v1 "switchyard/proto/switchyard/v1"
)

// TestTermsApplyToSnapshots takes snapshots in order: a worker without memory of a game, as after a restart, refuses tasks as well, and takes
// them again when the game or the hour is over.
func TestTermsApplyToSnapshots(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 12, 1, 17, 0, 0, 0, time.UTC) // 18:00 in Berlin
	own := terms{flags: &v1.NodeTerms{WhileGaming: "drain", KeptFor: []string{"label=b"}}, gamingTimeout: time.Hour}
	attempts := &taskrunner.Node{Name: "n"}
	for _, step := range []struct {
		after    time.Duration
		isGaming bool
		set      *v1.NodeTerms
		refusal  string
		labels   []string
	}{
		{0, true, nil, "in use for a game", []string{"a", "b", "c"}},
		{time.Minute, true, nil, "in use for a game", []string{"a", "b", "c"}},
		{2 * time.Minute, false, nil, "", []string{"a", "b", "c"}},
		{3 * time.Minute, true, &v1.NodeTerms{WhileGaming: "finish", KeptFor: []string{"none"}}, "", []string{"a", "c"}},
		{4 * time.Minute, false, &v1.NodeTerms{Hours: []string{"19:00-07:00 Europe/Berlin"}}, "outside its hours (takes tasks again at 19:00 CET)", []string{"a", "b", "c"}},
		{time.Hour, false, &v1.NodeTerms{Hours: []string{"19:00-07:00 Europe/Berlin"}}, "", []string{"a", "b", "c"}},
	} {
		s := &v1.NodeSnapshot{Gaming: step.isGaming, TakenAt: timestamppb.New(start.Add(step.after)), Labels: []string{"a", "c"}}
		own.set = step.set
		own.apply(s, attempts)
		if s.GetRefusal() != step.refusal || !slices.Equal(s.GetLabels(), step.labels) {
			t.Errorf("after %s: %q, %v", step.after, s.GetRefusal(), s.GetLabels())
		}
	}
}
