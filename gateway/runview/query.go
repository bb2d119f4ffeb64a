package runview

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/registry"
	"switchyard/gateway/rpcerror"
)

const (
	// queryTries is how often a query is sent that found the run gone on.
	queryTries = 3
	// noWorkerPause is the pause between queries that found no worker.
	noWorkerPause = 200 * time.Millisecond
)

// Query queries the newest execution of a workflow and reads its answer. It gives up after queryTimeout.
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
			return err
		default:
			try++
		}
	}
}

// foundNoWorker reports whether a query was refused because no worker has polled its task queue lately. A server that
// was started again forgets those that did, until they poll it.
func foundNoWorker(err error) bool {
	return rpcerror.Is[*serviceerror.FailedPrecondition](err) && strings.Contains(err.Error(), "no poller seen")
}

// isOvertaken reports whether a query came to a worker that had let go of the execution, mostly because it has just ended,
// and whose history had grown since the query was sent: the SDK takes that for an illegal state (temporalio/sdk-go issue
// 755). The same query, sent again, finds the current state.
func isOvertaken(err error) bool {
	return rpcerror.Is[*serviceerror.QueryFailed](err) && strings.Contains(err.Error(), "invalid state transition")
}
