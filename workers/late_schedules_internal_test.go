package workers

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

func TestLateScheduleIsToldToDefinitionAndFleet(t *testing.T) {
	t.Parallel()
	since := timestamppb.New(time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC))
	on := func(to, event string) *v1.Notification { return &v1.Notification{To: to, On: []string{event}} }
	def := &v1.Definition{Name: "nightly", Notify: []*v1.Notification{on("own", v1.NotifyLate), on("other", v1.NotifyFailed)}}
	s := &v1.Schedule{Name: "nightly", Workflow: "nightly", ExpectedBy: "06:00", LateSince: since, Paused: true}
	in := lateNotification(def, []*v1.Notification{on("fleet", v1.NotifyLate)}, s)
	if n := in.GetNotify(); len(n) != 2 || n[0].GetTo() != "own" || n[1].GetTo() != "fleet" {
		t.Errorf("told %v", n)
	}
	if run := in.GetRun(); run.GetId() != "" || run.GetName() != "nightly" || !strings.Contains(run.GetError(), "no run has completed by 06:00; the schedule is paused, and `switchyard schedules resume nightly`") || in.GetAt() != since {
		t.Errorf("it says %v", in)
	}
	if in := lateNotification(&v1.Definition{Name: "nightly"}, nil, s); in != nil {
		t.Errorf("without entries: %v", in)
	}
}
