package runview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/registry"
	"switchyard/gateway/rpcerror"
)

const (
	// queryTries is how often a query is sent to a run that continues as new meanwhile.
	queryTries = 3
	// noWorkerPause is the pause after a query that found no worker.
	noWorkerPause = 200 * time.Millisecond
)

// errNoAnswer reports a workflow that did not answer a query, although the server could be reached.
var errNoAnswer = errors.New("its workflow does not answer")

// Query queries the newest execution of a workflow and decodes the reply into answer. It gives up after queryTimeout.
func (r *Reader) Query(ctx context.Context, id, name string, req, answer proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	for try := 1; ; {
		value, err := r.client.QueryWorkflow(ctx, id, "", name, req)
		switch {
		case err == nil:
			return value.Get(answer)
		case foundNoWorker(err):
			select {
			case <-time.After(noWorkerPause):
			case <-ctx.Done():
				return fmt.Errorf("%w answers: %v", registry.ErrNoControl, err)
			}
		case try == queryTries || !isOvertaken(err):
			if rpcerror.IsPermanent(err) || rpcerror.Is[*serviceerror.Unavailable](err) {
				return err
			}
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		default:
			try++
		}
	}
}

// foundNoWorker reports whether a query was refused because no worker has polled its task queue lately. A restarted server
// does not know its pollers until they poll again.
func foundNoWorker(err error) bool {
	return rpcerror.Is[*serviceerror.FailedPrecondition](err) && strings.Contains(err.Error(), "no poller seen")
}

// isOvertaken reports whether a query failed because its worker had evicted the execution, usually one that has just
// ended, and the history grew after the query was sent: the SDK reports an illegal state (temporalio/sdk-go issue 755).
// The same query succeeds when it is sent again.
func isOvertaken(err error) bool {
	return rpcerror.Is[*serviceerror.QueryFailed](err) && strings.Contains(err.Error(), "invalid state transition")
}
