package gateway

import (
	"context"
	"strings"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/proto"
)

// queryTries is how often a query is sent that found the run gone on.
const queryTries = 3

// query asks the newest execution of a workflow, and reads its answer. One that does
// not answer is given up after queryTimeout.
func (r *reader) query(ctx context.Context, id, name string, req, answer proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	for try := 1; ; try++ {
		value, err := r.client.QueryWorkflow(ctx, id, "", name, req)
		if err == nil {
			return value.Get(answer)
		}
		if try == queryTries || !overtaken(err) {
			return err
		}
	}
}

// overtaken says that a query came to a worker that had let go of the execution,
// mostly because it has just ended, and whose history had gone on since the query was
// sent: the SDK takes that for an illegal state (temporalio/sdk-go issue 755). The
// same query finds the state of now.
func overtaken(err error) bool {
	return is[*serviceerror.QueryFailed](err) && strings.Contains(err.Error(), "invalid state transition")
}
