package runview

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// faultyClient fails the first queries and then answers them.
type faultyClient struct {
	client.Client
	faults []error
	answer proto.Message
	asked  int
}

func (c *faultyClient) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	c.asked++
	if c.asked <= len(c.faults) {
		return nil, c.faults[c.asked-1]
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(c.answer)
	return client.NewValue(payloads), err
}

// TestQueryIsRetriedWhenOvertaken checks that a query is repeated if the run has advanced past it, or if the server knows no
// worker yet. Other errors are returned.
func TestQueryIsRetriedWhenOvertaken(t *testing.T) {
	t.Parallel()
	failed := func(text string) error { return serviceerror.NewQueryFailed(text) }
	overtaken := failed("[TMPRL1100] invalid state transition: attempt to handleInitiatedEvent, CommandType: Timer, ID: 107, state=Created")
	noWorker := serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down")
	for name, test := range map[string]struct {
		faults []error
		asked  int
		fails  bool
	}{
		"answered":             {nil, 1, false},
		"overtaken":            {[]error{overtaken, overtaken}, 3, false},
		"for ever":             {[]error{overtaken, overtaken, overtaken, overtaken}, queryTries, true},
		"no worker yet":        {[]error{noWorker, noWorker, noWorker, noWorker}, 5, false},
		"another fault":        {[]error{failed("the run has not begun")}, 1, true},
		"another precondition": {[]error{serviceerror.NewFailedPrecondition("the namespace is deleted")}, 1, true},
		"does not match":       {[]error{failed("[TMPRL1100] nondeterministic workflow: missing replay command")}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &faultyClient{faults: test.faults, answer: &historyv1.EventsResponse{Slices: 7}}
				var answer historyv1.EventsResponse
				err := (&Reader{client: c}).Query(t.Context(), "run", names.EventsQuery, &historyv1.EventsRequest{}, &answer)
				if c.asked != test.asked || (err != nil) != test.fails || !test.fails && answer.GetSlices() != 7 {
					t.Errorf("asked %d times: %v (%v)", c.asked, &answer, err)
				}
			})
		})
	}
}

// TestQueryWithoutWorkerIsUnavailable checks that a query that finds no worker in time returns an error that names the cause and
// that clients retry.
func TestQueryWithoutWorkerIsUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), noWorkerPause/2)
		defer cancel()
		c := &faultyClient{faults: []error{serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down")}}
		err := (&Reader{client: c}).Query(ctx, "run", names.EventsQuery, &historyv1.EventsRequest{}, &historyv1.EventsResponse{})
		if rpcerror.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "no control process answers") {
			t.Errorf("%v: %v", rpcerror.CodeOf(err), err)
		}
	})
}

// TestInstanceQueryIsRepeatedAfterATimeout checks that a query for instances is repeated if a busy machine does not answer in
// time.
func TestInstanceQueryIsRepeatedAfterATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &faultyClient{faults: []error{serviceerror.NewDeadlineExceeded("context deadline exceeded")}, answer: &historyv1.InstancesResponse{}}
		if _, err := (&Reader{client: c}).QueryInstances(t.Context(), "run", &historyv1.InstancesRequest{}); err != nil || c.asked != 2 {
			t.Errorf("asked %d times: %v", c.asked, err)
		}
	})
}

// TestCompletedInstancesAreReadOnceForAView reads every instance of an ended part one after the other, with one query and one read
// of the store, and those of a later view again, because the part may have been opened meanwhile.
func TestCompletedInstancesAreReadOnceForAView(t *testing.T) {
	t.Parallel()
	kept, err := store.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	child := names.FanOut{Run: "run", Task: "each"}.ID()
	put := func(node string) {
		part := &v1.Task{}
		for i := range int32(instancesAhead) {
			part.Instances = append(part.Instances, &v1.Instance{Index: i, State: v1.TaskCompleted, Node: node})
		}
		part.Instances[instancesAhead-1].State = v1.TaskFailed
		if err := kept.PutMessage(t.Context(), storekey.Status(child, 0), &historyv1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{"each": part}}}); err != nil {
			t.Fatal(err)
		}
	}
	c := &faultyClient{answer: &historyv1.InstancesResponse{Child: child}}
	r := &Reader{client: c, store: kept}
	newView := func() *View {
		v := NewView("run")
		v.Tasks["each"] = &TaskView{Task: &v1.Task{Count: proto.Int32(instancesAhead)}}
		return v
	}
	nodeOf := func(v *View, index int) string {
		i, err := r.Completed(t.Context(), v, "each", index)
		if err != nil {
			t.Fatal(err)
		}
		if i == nil {
			return ""
		}
		return i.Instance.GetNode()
	}
	put("old")
	v := newView()
	for i := range instancesAhead {
		if i == 1 {
			put("new") // a second read would return it
		}
		if got := nodeOf(v, i); i < instancesAhead-1 && got != "old" {
			t.Fatalf("instance %d is on %q after %d queries", i, got, c.asked)
		} else if i == instancesAhead-1 && got != "" {
			t.Errorf("the failed instance is on %q", got)
		}
	}
	if got := nodeOf(newView(), 3); got != "new" {
		t.Errorf("of a later view: %q", got)
	}
}
