package library_test

import (
	"errors"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/library"
	"switchyard/activities/schedules"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// put stores a definition with a schedule.
func put(t *testing.T, name string, schedule *v1.ScheduleDefinition, replace bool) {
	t.Helper()
	def := simple(name, "says when", "true")
	def.Schedule = schedule
	if _, err := library.New(temporalClient, client.DefaultNamespace).Put(t.Context(), def, library.PutOptions{Replace: replace}); err != nil {
		t.Fatal(err)
	}
}

func TestPutMakesSchedule(t *testing.T) {
	t.Parallel()
	all := schedules.New(temporalClient, client.DefaultNamespace)
	input, _ := structpb.NewStruct(map[string]any{"kind": "full"})
	put(t, "clockwork", &v1.ScheduleDefinition{
		Cron: []string{"0 2 * * MON-FRI", "@daily", "@every 90m", "*/15 8-18 1,15 JAN-JUN *"}, Timezone: "Europe/Berlin", Jitter: "5m", Overlap: "queue", CatchUp: "2h", Input: input,
	}, false)
	got, err := all.Get(t.Context(), "clockwork")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"0 2 * * 1-5", "0 0 * * *", "*/15 8-18 1,15 JAN-JUN *", "@every 1h30m"}; !slices.Equal(got.GetCron(), want) {
		t.Errorf("its times are %q, want %q", got.GetCron(), want)
	}
	if got.GetName() != "clockwork" || got.GetWorkflow() != "clockwork" || got.GetTimezone() != "Europe/Berlin" || got.GetJitter() != "5m" ||
		got.GetOverlap() != "queue" || got.GetCatchUp() != "2h" || got.GetPaused() || got.GetNote() != "" || len(got.GetNextTimes()) != 10 {
		t.Errorf("it is %v", got)
	}
	stored, err := library.New(temporalClient, client.DefaultNamespace).Get(t.Context(), "clockwork")
	if err != nil || stored.Definition.GetSchedule().GetTimezone() != "Europe/Berlin" {
		t.Errorf("the definition is %v, %v", stored, err)
	}

	put(t, "clockwork", &v1.ScheduleDefinition{Cron: []string{"@hourly"}}, true)
	if got, err = all.Get(t.Context(), "clockwork"); err != nil || !slices.Equal(got.GetCron(), []string{"0 * * * *"}) || got.GetTimezone() != "" ||
		got.GetJitter() != "" || got.GetOverlap() != "skip" || got.GetCatchUp() != "1h" {
		t.Errorf("replaced, it is %v, %v", got, err)
	}
}

// TestReplacedScheduleStaysPaused checks in which cases a definition that replaces another one resumes
// the schedule.
func TestReplacedScheduleStaysPaused(t *testing.T) {
	t.Parallel()
	all := schedules.New(temporalClient, client.DefaultNamespace)
	hourly := func(paused *bool) *v1.ScheduleDefinition {
		return &v1.ScheduleDefinition{Cron: []string{"@hourly"}, Paused: paused}
	}
	is := func(when string, paused bool, note string) {
		t.Helper()
		got, err := all.Get(t.Context(), "pausing")
		if err != nil || got.GetPaused() != paused || got.GetNote() != note {
			t.Errorf("%s it is %v, %v", when, got, err)
		}
	}
	put(t, "pausing", nil, false)
	put(t, "pausing", hourly(nil), true)
	is("with its first times", false, "")
	if got, err := all.SetPaused(t.Context(), "pausing", true, "paused by ann: fire"); err != nil || !got.GetPaused() || got.GetNextTimes() != nil {
		t.Fatalf("paused, it is %v, %v", got, err)
	}
	put(t, "pausing", hourly(nil), true)
	is("paused by a person and replaced", true, "paused by ann: fire")
	put(t, "pausing", hourly(proto.Bool(false)), true)
	is("after paused: false", false, "")
	put(t, "pausing", hourly(proto.Bool(true)), true)
	is("after paused: true", true, "")
	put(t, "pausing", hourly(nil), true)
	is("without paused: true", false, "")
	if got, err := all.SetPaused(t.Context(), "pausing", true, ""); err != nil || !got.GetPaused() {
		t.Fatal(err)
	}
	put(t, "pausing", nil, true)
	described, err := all.Describe(t.Context(), "workflow:pausing")
	if err != nil || !described.GetSchedule().GetState().GetPaused() || schedules.HasTimes(described.GetSchedule().GetSpec()) {
		t.Errorf("without a schedule it is %v, %v", described, err)
	}
}

// TestDescriptionOutlivesForeignNote lists a stored workflow whose note another tool has replaced, and checks that its owner still
// owns it.
func TestDescriptionOutlivesForeignNote(t *testing.T) {
	t.Parallel()
	put(t, "noted", &v1.ScheduleDefinition{Cron: []string{"@hourly"}}, false)
	l := library.New(temporalClient, client.DefaultNamespace)
	stored, err := l.Get(t.Context(), "noted")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Put(t.Context(), stored.Definition, library.PutOptions{Owner: "yard", Adopt: true}); err != nil {
		t.Fatal(err)
	}
	if err := temporalClient.ScheduleClient().GetHandle(t.Context(), "workflow:noted").Pause(t.Context(), client.SchedulePauseOptions{Note: "by hand"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Put(t.Context(), stored.Definition, library.PutOptions{Owner: "else"}); !errors.Is(err, library.ErrOwned) {
		t.Errorf("another owner replaces it: %v", err)
	}
	testneeds.Await(t, "the list has the pause", func() bool {
		all, err := l.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(s *library.Stored) bool {
			return s.Definition.GetName() == "noted" && s.Definition.GetDescription() == "says when" && !s.UpdatedAt.IsZero() && s.Owner == "yard" &&
				s.Schedule.GetPaused() && s.Schedule.GetNote() == "by hand"
		})
	})
}

// TestPauseDuringAPutStands pauses a schedule in the moment in which another person stores its definition again.
func TestPauseDuringAPutStands(t *testing.T) {
	t.Parallel()
	all := schedules.New(temporalClient, client.DefaultNamespace)
	yearly := &v1.ScheduleDefinition{Cron: []string{"@yearly"}}
	put(t, "contended", yearly, false)
	for range 5 {
		paused := make(chan error)
		go func() {
			_, err := all.SetPaused(t.Context(), "contended", true, "paused by ann")
			paused <- err
		}()
		put(t, "contended", yearly, true)
		if err := <-paused; err != nil {
			t.Fatal(err)
		}
		if s, err := all.Get(t.Context(), "contended"); err != nil || !s.GetPaused() || s.GetNote() != "paused by ann" {
			t.Fatalf("%v, %v", s, err)
		}
		if _, err := all.SetPaused(t.Context(), "contended", false, ""); err != nil {
			t.Fatal(err)
		}
	}
}
