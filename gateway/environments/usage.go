package environments

import (
	"context"
	"slices"
	"sync"

	workflowpb "go.temporal.io/api/workflow/v1"
	"golang.org/x/sync/errgroup"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// definitionsAtOnce bounds how many run definitions are read concurrently.
const definitionsAtOnce = 8

// OpenRuns finds the users of environments in the definitions of open runs. Visibility has no room for another list
// attribute, so OpenRuns reads the definition of every open run with tasks of type container or vps. It misses names that
// templates compute from inputs or outputs, because those are not in the definition.
type OpenRuns struct {
	Index  *runindex.Index
	Reader *runview.Reader
}

var _ Usage = OpenRuns{}

// Runs returns open runs that name an environment, at most `most` of them.
func (u OpenRuns) Runs(ctx context.Context, name string, most int) ([]string, error) {
	var mu sync.Mutex
	var users []string
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(definitionsAtOnce)
	err := u.Index.EachOpenOfTypes(ctx, []string{v1.TypeContainer, v1.TypeVPS}, func(info *workflowpb.WorkflowExecutionInfo) bool {
		group.Go(func() error {
			in, err := u.Reader.Input(reading, info.GetExecution())
			if err != nil {
				if rpcerror.IsPermanent(err) || runview.IsUnreadable(err) {
					return nil // the run has been deleted or is unreadable, so it uses nothing
				}
				return err
			}
			if !slices.Contains(definition.Environments(in.GetDefinition()), name) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			users = append(users, info.GetExecution().GetWorkflowId())
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		return len(users) < most && reading.Err() == nil
	})
	if failed := group.Wait(); failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(users)
	users = slices.Compact(users)
	return users[:min(len(users), most)], nil
}
