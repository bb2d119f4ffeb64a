package environment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// steps implements the activities of a creation and records their requests.
type steps struct {
	capture func(try int) (*historyv1.CaptureResponse, error)
	keep    error
	discard error

	captured, kept, discarded []*v1.Environment
	queue                     string // of the last Capture
}

func (s *steps) Capture(ctx context.Context, req *historyv1.CaptureRequest) (*historyv1.CaptureResponse, error) {
	s.captured, s.queue = append(s.captured, req.GetEnvironment()), activity.GetInfo(ctx).TaskQueue
	return s.capture(len(s.captured))
}

func (s *steps) Keep(_ context.Context, e *v1.Environment) (*v1.Environment, error) {
	s.kept = append(s.kept, e)
	ready := proto.CloneOf(e)
	ready.State, ready.Version = v1.EnvironmentReady, e.GetVersion()+1
	return ready, s.keep
}

func (s *steps) Discard(_ context.Context, e *v1.Environment) error {
	s.discarded = append(s.discarded, e)
	return s.discard
}

// captures answers each attempt with a stored archive.
func captures(int) (*historyv1.CaptureResponse, error) {
	return &historyv1.CaptureResponse{Environment: &v1.Environment{Kind: v1.EnvironmentImage, ImageId: "sha256:1", Size: 7, Digest: "ab", Parts: 1, Archive: "0f/1"}}, nil
}

func request() *historyv1.CaptureRequest {
	return &historyv1.CaptureRequest{
		Environment: &v1.Environment{Name: "tools", State: v1.EnvironmentCreating, Run: "desk-1", Task: "vps", Node: "gpu-1", Archive: "0f", Version: 2, CreatedBy: "ann"},
		Chain:       "c", Claim: 3, Type: v1.TypeVPS,
	}
}

// create runs the workflow with steps. prepare may be nil.
func create(t *testing.T, s *steps, prepare func(*testsuite.TestWorkflowEnvironment)) (*v1.Environment, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	env.RegisterActivityWithOptions(s.Capture, activity.RegisterOptions{Name: names.CaptureActivity})
	env.RegisterActivityWithOptions(s.Keep, activity.RegisterOptions{Name: names.KeepActivity})
	env.RegisterActivityWithOptions(s.Discard, activity.RegisterOptions{Name: names.DiscardActivity})
	if prepare != nil {
		prepare(env)
	}
	env.ExecuteWorkflow(Environment, request())
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	if err := env.GetWorkflowError(); err != nil {
		return nil, err
	}
	ready := &v1.Environment{}
	if err := env.GetWorkflowResult(ready); err != nil {
		t.Fatal(err)
	}
	return ready, nil
}

func TestEnvironmentThatItsNodeHasStoredTakesItsName(t *testing.T) {
	s := &steps{capture: captures}
	got, err := create(t, s, nil)
	want := request().GetEnvironment()
	want.Kind, want.ImageId, want.Size, want.Digest, want.Parts, want.Archive = v1.EnvironmentImage, "sha256:1", 7, "ab", 1, "0f/1"
	if err != nil || len(s.kept) != 1 || !proto.Equal(s.kept[0], want) || len(s.discarded) != 0 {
		t.Errorf("%v; kept %v, discarded %v", err, s.kept, s.discarded)
	}
	if got.GetState() != v1.EnvironmentReady || got.GetVersion() != 3 || s.queue != names.NodeQueue("gpu-1", names.EnvironmentLane) {
		t.Errorf("it is %v, from queue %q", got, s.queue)
	}
}

func TestEnvironmentIsStoredAnewAfterAFaultOfItsNode(t *testing.T) {
	s := &steps{capture: func(try int) (*historyv1.CaptureResponse, error) {
		if try < 3 {
			return nil, errors.New("the engine does not answer")
		}
		return captures(try)
	}}
	if got, err := create(t, s, nil); err != nil || got.GetState() != v1.EnvironmentReady || len(s.captured) != 3 {
		t.Errorf("%v, %v after %d tries", got, err, len(s.captured))
	}
}

func TestEnvironmentFailsInOneLineAndItsArchiveIsRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		capture, keep error
		says          string
		tries         int
	}{
		"refused":              {capture: temporal.NewNonRetryableApplicationError("task vps runs as a process", "Refused", nil), says: "task vps runs as a process", tries: 1},
		"faults":               {capture: errors.New("the engine does not answer"), says: "the engine does not answer", tries: 5},
		"node away":            {capture: temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), says: "node gpu-1 did not start within 15m0s: it is unreachable", tries: 1},
		"node silent":          {capture: temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil), says: "node gpu-1 was silent for 1m0s", tries: 5},
		"name taken meanwhile": {keep: temporal.NewNonRetryableApplicationError("environment tools exists", "Refused", nil), says: "environment tools exists", tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &steps{keep: test.keep, capture: func(try int) (*historyv1.CaptureResponse, error) {
				if test.capture != nil {
					return nil, test.capture
				}
				return captures(try)
			}}
			_, err := create(t, s, nil)
			failed, ok := errors.AsType[*temporal.ApplicationError](err)
			if !ok || !strings.HasPrefix(failed.Message(), test.says) || strings.Contains(failed.Message(), "\n") {
				t.Errorf("%v", err)
			}
			if len(s.captured) != test.tries || len(s.discarded) != 1 || !strings.HasPrefix(s.discarded[0].GetArchive(), "0f") {
				t.Errorf("%d tries, discarded %v", len(s.captured), s.discarded)
			}
		})
	}
}

func TestCancelledEnvironmentIsNotKept(t *testing.T) {
	s := &steps{capture: captures}
	_, err := create(t, s, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, 0)
	})
	if !temporal.IsCanceledError(err) || len(s.kept) != 0 || len(s.discarded) != 1 {
		t.Errorf("%v; kept %v, discarded %v", err, s.kept, s.discarded)
	}
}

func TestEnvironmentWhoseArchiveIsStuckFailsWithItsOwnReason(t *testing.T) {
	s := &steps{
		capture: func(int) (*historyv1.CaptureResponse, error) {
			return nil, temporal.NewNonRetryableApplicationError("no such image", "Refused", nil)
		},
		discard: errors.New("the store is away"),
	}
	_, err := create(t, s, nil)
	if err == nil || !strings.Contains(err.Error(), "no such image") || len(s.discarded) < 2 || slices.Contains(s.discarded, nil) {
		t.Errorf("%v after %d tries to remove it", err, len(s.discarded))
	}
}

func TestExecutionWithoutAnEnvironmentDoesNothing(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	env.ExecuteWorkflow(Environment, &historyv1.CaptureRequest{})
	if err := env.GetWorkflowError(); !env.IsWorkflowCompleted() || err != nil {
		t.Errorf("it ends with %v", err)
	}
}
