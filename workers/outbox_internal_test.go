package workers

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/notification"
)

// refuser answers starts with errors, by the ID of the workflow, and notes the others.
type refuser struct {
	errs    map[string]error
	started []string
}

func (r *refuser) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	if err := r.errs[o.ID]; err != nil {
		return nil, err
	}
	r.started = append(r.started, o.ID)
	return nil, nil
}

// TestOutboxKeepsAnEventUntilItsWorkflowIsStarted checks what a leader starts of the events that another one has left.
func TestOutboxKeepsAnEventUntilItsWorkflowIsStarted(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	earlier := newOutbox(nil, s, log)
	put := func(run string, age time.Duration) string {
		in := &historyv1.NotifyInput{Event: v1.NotifyFailed, At: timestamppb.New(time.Now().Add(-age)), Run: &historyv1.RunView{Id: run}}
		for range 2 { // as if the answer to the first one were lost
			if err := earlier.Tell(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		return names.NotifyWorkflowID(run, 0, v1.NotifyFailed, "")
	}
	left := func() (n int) {
		for range s.Keys(t.Context(), storekey.OutboxPrefix) {
			n++
		}
		return n
	}
	newest, away, told, refused, old := put("a", 0), put("b", time.Minute), put("c", time.Hour), put("d", 2*time.Hour), put("e", 3*time.Hour)
	late := put("f", notification.Patience+time.Hour)
	gone := errors.New("the server is away")
	server := &refuser{errs: map[string]error{
		away: gone, late: gone, told: serviceerror.NewWorkflowExecutionAlreadyStarted("", "", ""), refused: serviceerror.NewInvalidArgument("too large"),
	}}
	o := newOutbox(server, s, log)
	if err := o.empty(t.Context()); !errors.Is(err, gone) {
		t.Errorf("a look while the server is away: %v", err)
	}
	if n := left(); n != 2 || !slices.Equal(server.started, []string{old}) {
		t.Errorf("%d events are left; started %q", n, server.started)
	}
	delete(server.errs, away)
	if err := o.empty(t.Context()); err != nil || left() != 0 || !slices.Equal(server.started, []string{old, away, newest}) {
		t.Errorf("%v; %d events are left; started %q", err, left(), server.started)
	}
}
