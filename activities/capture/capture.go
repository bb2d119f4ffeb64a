package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/environments"
	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// RefusedError is the error type of a capture that an executor refuses.
const RefusedError = "CaptureRefused"

// Attempts captures the attempts that run on a node.
type Attempts interface {
	// Capture writes the files of the attempt that runs under a claim to an archive. It returns an *executor.Refusal, with a
	// reason for people, if the attempt cannot be captured.
	Capture(ctx context.Context, run, chain, task string, claim int32, to io.Writer) (executor.Captured, error)
}

// Node makes environment archives of the attempts and images of a node.
type Node struct {
	Client   client.Client
	Name     string
	Library  *environments.Library
	Attempts Attempts
	// Executors holds the executors of the node by task type.
	Executors map[string]executor.Executor
	Logger    *slog.Logger
}

// Capture stores the archive of the environment in the request. It implements the activity names.CaptureActivity.
func (n *Node) Capture(ctx context.Context, req *historyv1.CaptureRequest) (*historyv1.CaptureResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := n.Library.NewWriter(ctx, req.GetEnvironment().GetArchive())
	stopBeats := n.beat(ctx, cancel, w)
	captured, err := n.write(ctx, req, w)
	if err != nil {
		cancel(err) // store nothing more
	}
	err = errors.Join(err, w.Close())
	stopBeats()
	cause := context.Cause(ctx)
	cancel(nil)
	if err != nil {
		return nil, n.failure(cause, req, err)
	}
	e := proto.CloneOf(req.GetEnvironment())
	e.Kind, e.ImageId = captured.Kind, captured.ImageID
	e.Archive, e.Size, e.Digest, e.Parts = w.Archive(), w.Size(), w.Digest(), int32(w.Parts())
	return &historyv1.CaptureResponse{Environment: e}, nil
}

// write writes the archive of an attempt if the request names a run, else of an image.
func (n *Node) write(ctx context.Context, req *historyv1.CaptureRequest, to io.Writer) (executor.Captured, error) {
	e := req.GetEnvironment()
	if e.GetRun() != "" {
		return n.Attempts.Capture(ctx, e.GetRun(), req.GetChain(), e.GetTask(), req.GetClaim(), to)
	}
	taskType, image, what := v1.TypeContainer, e.GetImage(), "containers"
	if req.GetVmImage() != "" {
		taskType, image, what = v1.TypeVPS, req.GetVmImage(), "virtual machines"
	}
	exec := n.Executors[taskType]
	if exec == nil || exec.Capabilities().Capture == nil {
		return executor.Captured{}, &executor.Refusal{Text: fmt.Sprintf("node %s cannot create environments from images of %s", n.Name, what)}
	}
	return exec.Capabilities().Capture.CaptureImage(ctx, image, req.GetRegistryAuth(), to, func(line string) {
		n.Logger.Debug("creating an environment from an image", "environment", e.GetName(), "image", image, "progress", line)
	})
}

// failure converts err to the error of the activity. cause is why the activity's context has ended, or nil.
func (n *Node) failure(cause error, req *historyv1.CaptureRequest, err error) error {
	switch {
	case errors.Is(cause, heartbeat.ErrCancelled):
		return temporal.NewCanceledError()
	case errors.Is(cause, errStopping):
		return temporal.NewApplicationErrorWithOptions("the worker of the node stops", "Stopping", temporal.ApplicationErrorOptions{
			Category: temporal.ApplicationErrorCategoryBenign,
		})
	}
	if refusal, ok := errors.AsType[*executor.Refusal](err); ok {
		return temporal.NewNonRetryableApplicationError(refusal.Text, RefusedError, nil)
	}
	if refused := executor.AsStartError(err); refused != nil {
		return temporal.NewNonRetryableApplicationError(refused.Error(), RefusedError, nil)
	}
	// errors.Join puts each error on its own line.
	text := strings.Join(strings.Split(err.Error(), "\n"), "; ")
	n.Logger.Warn("could not store the archive of an environment", "environment", req.GetEnvironment().GetName(), "error", text)
	return errors.New(text)
}
