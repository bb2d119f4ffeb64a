package cli

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/exit"
	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

// nightlySchedule returns a schedule across the end of summer time.
func nightlySchedule() *v1.Schedule {
	at := func(text string) *timestamppb.Timestamp {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			panic(err)
		}
		return timestamppb.New(t)
	}
	return &v1.Schedule{
		Name: "nightly", Id: "workflow:nightly", Workflow: "nightly", Cron: []string{"30 2 * * *", "@every 12h"}, Except: []string{"* * 24 12 *"}, Timezone: "Europe/Berlin",
		Jitter: "5m", Overlap: "queue", CatchUp: "1h", Note: "resumed by ann@laptop (unverified): fixed", Started: 41, Missed: 2, Skipped: 1, Waiting: 3,
		NextTimes: []*timestamppb.Timestamp{at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z")},
		Runs: []*v1.ScheduledRun{{RunId: "nightly-2026-10-24T00:30:00Z", ScheduledAt: at("2026-10-24T00:30:00Z"), StartedAt: at("2026-10-24T00:30:01Z"), State: "running"}, {
			RunId: "nightly-2026-10-23T00:30:00Z", ScheduledAt: at("2026-10-23T00:30:00Z"), StartedAt: at("2026-10-23T00:30:00Z"), State: "failed", CompletedAt: at("2026-10-23T00:31:07Z"),
		}},
		OpenRuns: []string{"nightly-2026-10-24T00:30:00Z"}, CreatedAt: at("2026-01-01T00:00:00Z"), Remaining: proto.Int32(7),
	}
}

// scriptSchedule lets the gateway have one schedule.
func scriptSchedule(f *fakeGateway, s *v1.Schedule) {
	script(f, &v1.ListSchedulesResponse{Items: []*v1.Schedule{s}})
	script(f, &v1.GetScheduleResponse{Schedule: s})
	script(f, &v1.PauseScheduleResponse{Schedule: s})
	script(f, &v1.ResumeScheduleResponse{Schedule: s})
	script(f, &v1.BackfillScheduleResponse{Times: s.GetNextTimes()})
	script(f, &v1.ListScheduleTimesResponse{Times: s.GetNextTimes(), Timezone: s.GetTimezone()})
}

func TestSchedulesAreShown(t *testing.T) {
	f := fake(t)
	scriptSchedule(f, nightlySchedule())
	for name, args := range map[string][]string{
		"schedules-list-text": {"list"}, "schedules-list-json": {"list", "-o", "json"}, "schedules-get-text": {"get", "nightly"},
		"schedules-get-json": {"get", "nightly", "-o", "json"}, "schedules-next-text": {"next", "nightly", "--limit", "2"}, "schedules-next-json": {"next", "nightly", "-o", "json"},
	} {
		got := run(t, append(append([]string{"schedules"}, args...), "--gateway", f.url)...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
		golden.Check(t, "testdata/"+name+".golden", got.stdout)
	}
}

// TestPutPrintsTheScheduleOfTheWorkflow checks what `workflows put` prints about the schedule of a definition.
func TestPutPrintsTheScheduleOfTheWorkflow(t *testing.T) {
	f := fake(t)
	s := nightlySchedule()
	script(f, &v1.PutWorkflowResponse{Name: "hello", Schedule: s})
	file := write(t, "f.yaml", hello)
	if got := run(t, "workflows", "put", file, "--gateway", f.url); !strings.HasSuffix(got.stderr, "\nits schedule is active; its next time is Sun 2026-10-25 02:30:00 CEST\n") {
		t.Errorf("%+v", got)
	}
	s.Paused = true
	if got := run(t, "workflows", "put", file, "--gateway", f.url); !strings.HasSuffix(got.stderr, "\nits schedule is paused; `switchyard schedules resume nightly` resumes it\n") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "workflows", "put", file, "-o", "json", "--gateway", f.url); got.stderr != "" || !strings.Contains(got.stdout, `"paused": true`) {
		t.Errorf("%+v", got)
	}
}

func TestScheduleCommandsSendRequests(t *testing.T) {
	f := fake(t)
	scriptSchedule(f, nightlySchedule())
	script(f, &v1.TriggerScheduleResponse{RunId: "nightly-2026-10-24T12:00:00Z", Outcome: v1.TriggerStarted})
	for _, test := range []struct {
		args           string
		stdout, stderr string
		asked          proto.Message
	}{
		{"pause nightly --reason fire", "", "schedule nightly is paused; `switchyard schedules resume nightly` continues it\n", &v1.PauseScheduleRequest{Name: "nightly", Reason: "fire"}},
		{"resume nightly", "", "schedule nightly is active; its next time is Sun 2026-10-25 02:30:00 CEST\n", &v1.ResumeScheduleRequest{Name: "nightly"}},
		{"trigger nightly --overlap allow", "nightly-2026-10-24T12:00:00Z\n", "", &v1.TriggerScheduleRequest{Name: "nightly", Overlap: "allow"}},
		{"backfill nightly --from 2026-10-25T00:00:00Z --to 2026-10-26T00:00:00Z", "Sun 2026-10-25 00:30:00 UTC\nSun 2026-10-25 01:30:00 UTC\n",
			"schedule nightly starts 2 runs; `switchyard runs list --trigger schedule` shows them\n", &v1.BackfillScheduleRequest{
				Name: "nightly", From: timestamppb.New(time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC)), To: timestamppb.New(time.Date(2026, 10, 26, 0, 0, 0, 0, time.UTC)),
			}},
	} {
		got := run(t, append(append([]string{"schedules"}, strings.Fields(test.args)...), "--gateway", f.url)...)
		if got.code != 0 || got.stdout != test.stdout || got.stderr != test.stderr {
			t.Errorf("%s: %+v", test.args, got)
		}
		if asked := f.asked[len(f.asked)-1]; !proto.Equal(asked, test.asked) {
			t.Errorf("%s asks for %v", test.args, asked)
		}
	}
	for outcome, says := range map[string]string{v1.TriggerSkipped: "--overlap allow", v1.TriggerQueued: "is queued behind"} {
		script(f, &v1.TriggerScheduleResponse{Outcome: outcome})
		if got := run(t, "schedules", "trigger", "nightly", "--gateway", f.url); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, says) {
			t.Errorf("%s: %+v", outcome, got)
		}
	}
	for args, says := range map[string]string{
		"backfill nightly": "--from is missing", "backfill nightly --from tomorrow": "--from", "next nightly --limit 0": "1 to 1000",
		"trigger nightly --overlap forbid": "skip", "get": "NAME is missing",
	} {
		run(t, append(append([]string{"schedules"}, strings.Fields(args)...), "--gateway", f.url)...).ends(t, exit.CodeUsage, says)
	}
}
