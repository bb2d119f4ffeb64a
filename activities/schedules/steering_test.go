package schedules_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"switchyard/activities/schedules"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// openYearly returns a workflow whose runs stay open and whose schedule is due only once a year, so
// that the test triggers it.
func openYearly(name, overlap string) string {
	return fmt.Sprintf("name: %s\nschedule: { cron: '@yearly', overlap: %s }\ntasks: { a: { type: shell, spec: { command: x } } }\n", name, overlap)
}

// trigger triggers a schedule and returns the outcome.
func trigger(t *testing.T, name, overlap string) schedules.Triggered {
	t.Helper()
	got, err := all().Trigger(t.Context(), name, overlap)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// statusOf returns the status of a run's workflow execution.
func statusOf(t *testing.T, run string) enumspb.WorkflowExecutionStatus {
	t.Helper()
	d, err := temporalClient.DescribeWorkflowExecution(t.Context(), run, "")
	if err != nil {
		t.Fatal(err)
	}
	return d.GetWorkflowExecutionInfo().GetStatus()
}

// end signals an open run to end.
func end(t *testing.T, run string) {
	t.Helper()
	if err := temporalClient.SignalWorkflow(t.Context(), run, "", endSignal, nil); err != nil {
		t.Fatal(err)
	}
}

const running = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING

func TestOverlapSkipLeavesTheLaterRunOut(t *testing.T) {
	t.Parallel()
	store(t, openYearly("skips", "skip"))
	first := trigger(t, "skips", "")
	if first.Outcome != v1.TriggerStarted || !strings.HasPrefix(first.RunID, "skips-") {
		t.Fatalf("the first trigger: %+v", first)
	}
	if second := trigger(t, "skips", ""); second.Outcome != v1.TriggerSkipped || second.RunID != "" {
		t.Errorf("the second trigger: %+v", second)
	}
	if s := get(t, "skips"); s.GetSkipped() != 1 || s.GetStarted() != 1 || !slices.Equal(s.GetOpenRuns(), []string{first.RunID}) {
		t.Errorf("it is %v", s)
	}
	end(t, first.RunID)
	testneeds.Await(t, "the schedule has seen the end of the run", func() bool { return len(get(t, "skips").GetOpenRuns()) == 0 })
	third := trigger(t, "skips", "")
	if third.Outcome != v1.TriggerStarted || third.RunID == first.RunID {
		t.Errorf("the third trigger: %+v", third)
	}
}

func TestOverlapQueueStartsTheLaterRunAfterTheFirst(t *testing.T) {
	t.Parallel()
	store(t, openYearly("queues", "queue"))
	first := trigger(t, "queues", "")
	if second := trigger(t, "queues", ""); second.Outcome != v1.TriggerQueued {
		t.Errorf("the second trigger: %+v", second)
	}
	if s := get(t, "queues"); s.GetWaiting() != 1 || len(s.GetRuns()) != 1 {
		t.Errorf("it is %v", s)
	}
	end(t, first.RunID)
	testneeds.Await(t, "the second run starts", func() bool {
		s := get(t, "queues")
		return s.GetWaiting() == 0 && len(s.GetRuns()) == 2 && s.GetRuns()[0].GetRunId() != first.RunID && statusOf(t, s.GetRuns()[0].GetRunId()) == running
	})
}

func TestOverlapReplaceCancelsTheFirstRun(t *testing.T) {
	t.Parallel()
	store(t, openYearly("replaces", "replace"))
	first := trigger(t, "replaces", "")
	second := trigger(t, "replaces", "")
	testneeds.Await(t, "the second run takes the place of the first", func() bool {
		s := get(t, "replaces")
		return len(s.GetRuns()) == 2 && statusOf(t, first.RunID) == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED &&
			statusOf(t, s.GetRuns()[0].GetRunId()) == running && (second.RunID == "" || second.RunID == s.GetRuns()[0].GetRunId())
	})
}

func TestOverlapAllowStartsBoth(t *testing.T) {
	t.Parallel()
	store(t, openYearly("allows", "allow"))
	// Both triggers fall into the same second, the resolution of the run ids that Temporal generates.
	first, second := trigger(t, "allows", ""), trigger(t, "allows", "")
	if first.Outcome != v1.TriggerStarted || second.Outcome != v1.TriggerStarted || first.RunID == second.RunID {
		t.Fatalf("triggered: %+v, %+v", first, second)
	}
	if statusOf(t, first.RunID) != running || statusOf(t, second.RunID) != running {
		t.Error("one of them has ended")
	}
}

// TestTriggersAtTheSameTimeStartARunEach triggers a schedule through several gateways at once.
func TestTriggersAtTheSameTimeStartARunEach(t *testing.T) {
	t.Parallel()
	const callers = 8
	store(t, openYearly("allows-many", "allow"))
	results := make(chan schedules.Triggered, callers)
	for range callers {
		go func() {
			got, err := all().Trigger(t.Context(), "allows-many", "")
			if err != nil {
				t.Error(err)
			}
			results <- got
		}()
	}
	var ids []string
	for range callers {
		got := <-results
		if got.Outcome != v1.TriggerStarted || slices.Contains(ids, got.RunID) {
			t.Fatalf("%+v after %v", got, ids)
		}
		if statusOf(t, got.RunID) != running {
			t.Errorf("%s has ended", got.RunID)
		}
		ids = append(ids, got.RunID)
	}
	if s := get(t, "allows-many"); s.GetStarted() != callers {
		t.Errorf("%d runs have started", s.GetStarted())
	}
}

// TestChangesAtTheSameTimeAllTakeEffect pauses a schedule while others trigger and backfill it.
func TestChangesAtTheSameTimeAllTakeEffect(t *testing.T) {
	t.Parallel()
	store(t, openYearly("changes-many", "allow"))
	var wg sync.WaitGroup
	change := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		change(func() error { _, err := all().Trigger(t.Context(), "changes-many", ""); return err })
	}
	change(func() error { _, err := all().SetPaused(t.Context(), "changes-many", true, "paused"); return err })
	change(func() error {
		year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
		_, _, err := all().Backfill(t.Context(), "changes-many", year(2020), year(2021), v1.OverlapAllow)
		return err
	})
	wg.Wait()
	testneeds.Await(t, "the triggers and the backfill have started runs", func() bool { return get(t, "changes-many").GetStarted() == 4 })
	if s := get(t, "changes-many"); !s.GetPaused() || s.GetNote() != "paused" {
		t.Errorf("it is %v", s)
	}
}

// TestTriggerWithAnotherOverlap starts a run beside an open one although the schedule's policy is to
// skip it.
func TestTriggerWithAnotherOverlap(t *testing.T) {
	t.Parallel()
	store(t, openYearly("overrides", "skip"))
	if first, second := trigger(t, "overrides", ""), trigger(t, "overrides", v1.OverlapAllow); second.Outcome != v1.TriggerStarted || first.RunID == second.RunID {
		t.Errorf("triggered: %+v, %+v", first, second)
	}
}

// TestIntervalRunsUntilPaused lets a schedule run by the clock, pauses it and resumes it.
func TestIntervalRunsUntilPaused(t *testing.T) {
	t.Parallel()
	store(t, "name: ticks\nschedule: { cron: '@every 1s', input: { brief: true } }\ntasks: { a: { type: shell, spec: { command: x } } }\n")
	testneeds.Await(t, "it starts runs", func() bool { return get(t, "ticks").GetStarted() >= 1 })
	paused, err := all().SetPaused(t.Context(), "ticks", true, "paused by ann: enough")
	if err != nil || !paused.GetPaused() || paused.GetNote() != "paused by ann: enough" || len(paused.GetNextTimes()) > 0 {
		t.Fatal(paused, err)
	}
	// At most one run that had started before the pause is counted afterwards.
	before := get(t, "ticks").GetStarted()
	resumed, err := all().SetPaused(t.Context(), "ticks", false, "")
	if err != nil || resumed.GetPaused() || resumed.GetNote() != "" {
		t.Fatal(resumed, err)
	}
	testneeds.Await(t, "it starts runs again", func() bool { return get(t, "ticks").GetStarted() > before+1 })
	s := get(t, "ticks")
	newest := s.GetRuns()[0]
	if want := "ticks-" + newest.GetScheduledAt().AsTime().Format(time.RFC3339); newest.GetRunId() != want || newest.GetStartedAt().AsTime().Before(newest.GetScheduledAt().AsTime()) {
		t.Errorf("its newest run is %v", newest)
	}
}

// TestBackfillStartsWhatHasNoRun checks that a backfill starts each run of a span once.
func TestBackfillStartsWhatHasNoRun(t *testing.T) {
	t.Parallel()
	for name, jitter := range map[string]string{"fills": "0", "fills-late": "20m"} {
		store(t, fmt.Sprintf("name: %s\nschedule: { cron: '0 */6 * * *', jitter: %s, timezone: Asia/Kathmandu, paused: true, input: { brief: true } }\ntasks: { a: { type: shell, spec: { command: x } } }\n", name, jitter))
		from, to := time.Date(2026, 3, 1, 0, 15, 0, 0, time.UTC), time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)
		middle := from.Add(20 * time.Hour)
		started, existing, err := all().Backfill(t.Context(), name, from, middle, "")
		if err != nil || len(started) != 4 || existing != 0 {
			t.Fatalf("%s: %v, %d, %v", name, started, existing, err)
		}
		done := func(n int32) {
			t.Helper()
			testneeds.Await(t, "the runs of the backfill are there", func() bool {
				s := get(t, name)
				return s.GetStarted() == n && s.GetWaiting() == 0
			})
		}
		done(4)
		var total []time.Time
		testneeds.Await(t, "the runs show in lists", func() bool {
			// After that, a wider span starts only the missing runs.
			total, existing, err = all().Backfill(t.Context(), name, from, middle, "")
			if err != nil {
				t.Fatal(err)
			}
			return len(total) == 0 && existing == 4
		})
		var again int32
		testneeds.Await(t, "the runs that were started for a second time are there", func() bool {
			s := get(t, name)
			again = s.GetStarted()
			return s.GetWaiting() == 0
		})
		started, existing, err = all().Backfill(t.Context(), name, from.Add(-12*time.Hour), to, v1.OverlapAllow)
		if err != nil || existing != 4 || len(started) != 6 {
			t.Fatalf("%s: %v, %d, %v", name, started, existing, err)
		}
		done(again + 6)
		if s := get(t, name); s.GetSkipped() > 0 || !strings.HasPrefix(s.GetRuns()[0].GetRunId(), name+"-2026-0") {
			t.Errorf("%s: %v", name, s)
		}
	}
	if _, _, err := all().Backfill(t.Context(), "fills", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ""); !errors.Is(err, schedules.ErrTooMany) {
		t.Errorf("six years: %v", err)
	}
}

func TestUnknownSchedule(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nowhere", "workflow:nowhere", "a/b c", strings.Repeat("x", 900)} {
		if _, err := all().Get(t.Context(), name); !errors.Is(err, schedules.ErrUnknown) {
			t.Errorf("%.20s: %v", name, err)
		}
	}
}
