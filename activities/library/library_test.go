package library_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/library"
	"switchyard/activities/schedules"
	"switchyard/dev/temporaltest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

var temporalClient client.Client

func TestMain(m *testing.M) {
	os.Exit(serve(m))
}

func serve(m *testing.M) int {
	server, err := temporaltest.Start(temporaltest.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = server.Stop() }()
	temporalClient, err = client.Dial(client.Options{HostPort: server.Address(), Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer temporalClient.Close()
	return m.Run()
}

func simple(name, description, command string) *v1.Definition {
	spec, _ := structpb.NewStruct(map[string]any{"command": command})
	return &v1.Definition{Name: name, Description: description, Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shell", Spec: spec}}}
}

// TestLife stores, replaces, reads and deletes a definition.
func TestLife(t *testing.T) {
	t.Parallel()
	l := library.New(temporalClient, client.DefaultNamespace)
	first, second := simple("life", "says: hello", "echo 1"), simple("life", "", "echo 2")
	if _, err := l.Get(t.Context(), "life"); !errors.Is(err, library.ErrUnknown) {
		t.Fatalf("before: %v", err)
	}
	if err := l.Delete(t.Context(), "life", ""); !errors.Is(err, library.ErrUnknown) {
		t.Fatalf("delete before: %v", err)
	}
	began := time.Now().Truncate(time.Second)
	if replaced, err := l.Put(t.Context(), first, library.PutOptions{Replace: true}); err != nil || replaced {
		t.Fatalf("put: %t, %v", replaced, err)
	}
	check := func(want *v1.Definition) {
		t.Helper()
		got, err := l.Get(t.Context(), "life")
		if err != nil || !proto.Equal(got.Definition, want) || got.UpdatedAt.Before(began) || got.UpdatedAt.After(time.Now()) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
	}
	check(first)
	if _, err := l.Put(t.Context(), second, library.PutOptions{}); !errors.Is(err, library.ErrExists) {
		t.Fatalf("put again: %v", err)
	}
	check(first)
	if replaced, err := l.Put(t.Context(), second, library.PutOptions{Replace: true}); err != nil || !replaced {
		t.Fatalf("replace: %t, %v", replaced, err)
	}
	check(second)
	if err := l.Delete(t.Context(), "life", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Get(t.Context(), "life"); !errors.Is(err, library.ErrUnknown) {
		t.Fatalf("after: %v", err)
	}
	if replaced, err := l.Put(t.Context(), first, library.PutOptions{}); err != nil || replaced {
		t.Fatalf("put once more: %t, %v", replaced, err)
	}
	check(first)
}

// TestItNeverRuns checks that the schedule of a definition without one is paused and has no times.
func TestItNeverRuns(t *testing.T) {
	t.Parallel()
	if _, err := library.New(temporalClient, client.DefaultNamespace).Put(t.Context(), simple("still", "", "true"), library.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := temporalClient.ScheduleClient().GetHandle(t.Context(), "workflow:still").Describe(t.Context())
	if err != nil || !d.Schedule.State.Paused || len(d.Info.NextActionTimes) > 0 {
		t.Fatalf("the schedule is %+v, %v", d, err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	l := library.New(temporalClient, client.DefaultNamespace)
	for _, name := range []string{"list-b", "list-a", "list-c"} {
		if _, err := l.Put(t.Context(), simple(name, "is "+name, "true"), library.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Delete(t.Context(), "list-c", ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		all, err := l.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var mine []string
		for _, s := range all {
			if strings.HasPrefix(s.Definition.GetName(), "list-") && s.Definition.GetDescription() == "is "+s.Definition.GetName() && !s.UpdatedAt.IsZero() {
				mine = append(mine, s.Definition.GetName())
			}
		}
		if fmt.Sprint(mine) == "[list-a list-b]" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("listed %v", mine)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestListShowsWhatIsOfferedToAgents lists definitions with and without a2a, also after a replacement, after a pause,
// and after another tool has replaced the note.
func TestListShowsWhatIsOfferedToAgents(t *testing.T) {
	t.Parallel()
	l := library.New(temporalClient, client.DefaultNamespace)
	put := func(name, description string, a2a bool) {
		t.Helper()
		def := simple(name, description, "true")
		def.A2A, def.Schedule = a2a, &v1.ScheduleDefinition{Cron: []string{"@yearly"}}
		if _, err := l.Put(t.Context(), def, library.PutOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
	}
	shown := func(want ...string) {
		t.Helper()
		testneeds.Await(t, fmt.Sprint("the list shows ", want), func() bool {
			all, err := l.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var mine []string
			for _, s := range all {
				if name, ok := strings.CutPrefix(s.Definition.GetName(), "offered-"); ok {
					mine = append(mine, fmt.Sprint(name, " ", s.Definition.GetA2A(), " ", s.Definition.GetDescription()))
				}
			}
			return slices.Equal(mine, want)
		})
	}
	put("offered-a", "says: hello", true)
	put("offered-b", "says more", false)
	put("offered-c", "", true)
	shown("a true says: hello", "b false says more", "c true ")
	put("offered-b", "says more", true)
	put("offered-c", "", false)
	shown("a true says: hello", "b true says more", "c false ")
	times := schedules.New(temporalClient, client.DefaultNamespace)
	if _, err := times.SetPaused(t.Context(), "offered-a", true, "paused: a while"); err != nil {
		t.Fatal(err)
	}
	put("offered-a", "says bye", true)
	foreign := client.SchedulePauseOptions{Note: "by hand"}
	if err := temporalClient.ScheduleClient().GetHandle(t.Context(), "workflow:offered-b").Pause(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "the list has the notes", func() bool {
		all, err := l.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		has := func(name, note string) bool {
			return slices.ContainsFunc(all, func(s *library.Stored) bool {
				return s.Definition.GetName() == name && s.Schedule.GetNote() == note
			})
		}
		return has("offered-a", "paused: a while") && has("offered-b", "by hand")
	})
	shown("a true says bye", "b true says more", "c false ")
}

// TestLarge stores a definition that fits after compression, and checks that one that does not fit is refused.
func TestLarge(t *testing.T) {
	t.Parallel()
	l := library.New(temporalClient, client.DefaultNamespace)
	def := simple("large", "", strings.Repeat("echo hello; ", 300_000)) // 3.6 MB
	if _, err := l.Put(t.Context(), def, library.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Get(t.Context(), "large"); err != nil || !proto.Equal(got.Definition, def) {
		t.Fatalf("it differs: %v", err)
	}
	noise := make([]byte, 1<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	text := hex.EncodeToString(noise)
	if _, err := l.Put(t.Context(), simple("noise", "", text[:1<<20]), library.PutOptions{}); err != nil {
		t.Errorf("1 MiB of noise: %v", err)
	}
	if _, err := l.Put(t.Context(), simple("noise", "", text+text), library.PutOptions{Replace: true}); !errors.Is(err, library.ErrTooLarge) {
		t.Errorf("4 MiB of noise: %v", err)
	}
	clocked := simple("clocked", "", "true")
	clocked.Schedule = &v1.ScheduleDefinition{Timezone: "Africa/Casablanca"}
	for hour := range 10 {
		clocked.Schedule.Cron = append(clocked.Schedule.Cron, fmt.Sprintf("*/7 %d-%d * * *", hour, hour+5))
	}
	if _, err := l.Put(t.Context(), clocked, library.PutOptions{}); !errors.Is(err, library.ErrTooLarge) || !strings.Contains(err.Error(), "calendars of Temporal") {
		t.Errorf("thousands of calendars: %v", err)
	}
}

// TestForeignSchedules checks that schedules which start other workflows are not listed and not returned as
// definitions.
func TestForeignSchedules(t *testing.T) {
	t.Parallel()
	_, err := temporalClient.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: "workflow:foreign", Paused: true, Action: &client.ScheduleWorkflowAction{ID: "x", Workflow: "Other", TaskQueue: "q"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := library.New(temporalClient, client.DefaultNamespace).Get(t.Context(), "foreign"); err == nil || errors.Is(err, library.ErrUnknown) {
		t.Errorf("got %v, %v", got, err)
	}
}
