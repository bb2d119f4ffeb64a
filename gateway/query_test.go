package gateway

import (
	"context"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// faultyClient fails the first queries.
type faultyClient struct {
	client.Client
	faults []string
	asked  int
}

func (c *faultyClient) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	c.asked++
	if c.asked <= len(c.faults) {
		return nil, serviceerror.NewQueryFailed(c.faults[c.asked-1])
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(&v1.EventsResponse{Parts: 7})
	return client.NewValue(payloads), err
}

// A query that the SDK could not answer because the run had gone on is asked again;
// another fault is told.
func TestQueryIsOvertaken(t *testing.T) {
	t.Parallel()
	const overtaken = "[TMPRL1100] invalid state transition: attempt to handleInitiatedEvent, CommandType: Timer, ID: 107, state=Created"
	for name, test := range map[string]struct {
		faults []string
		asked  int
		fails  bool
	}{
		"answered":       {nil, 1, false},
		"overtaken":      {[]string{overtaken, overtaken}, 3, false},
		"for ever":       {[]string{overtaken, overtaken, overtaken, overtaken}, queryTries, true},
		"another fault":  {[]string{"the run has not begun"}, 1, true},
		"does not match": {[]string{"[TMPRL1100] nondeterministic workflow: missing replay command"}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &faultyClient{faults: test.faults}
			var answer v1.EventsResponse
			err := (&reader{client: c}).query(t.Context(), "run", names.EventsQuery, &v1.EventsRequest{}, &answer)
			if c.asked != test.asked || (err != nil) != test.fails || !test.fails && answer.GetParts() != 7 {
				t.Errorf("asked %d times: %v (%v)", c.asked, &answer, err)
			}
		})
	}
}
