package environments

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// capturePurpose ends the texts of errors about tasks that cannot become an environment.
const capturePurpose = "environments are created from running containers and machines"

// archiveBytes is the number of random bytes in the name of an archive. The name must be unguessable: whoever knows it may
// write the archive.
const archiveBytes = 16

// cleanUpTimeout bounds releasing the reservation of a creation that could not be started.
const cleanUpTimeout = 10 * time.Second

// bucketURL matches the URL of an object in a bucket, such as s3://images/debian.qcow2.
var bucketURL = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(s3|gs)://[^/?]+/[^?]+(\?.*)?$`) })

// CreateEnvironment starts the creation of an environment.
func (s Service) CreateEnvironment(ctx context.Context, req *connect.Request[v1.CreateEnvironmentRequest]) (*connect.Response[v1.CreateEnvironmentResponse], error) {
	msg := req.Msg
	if err := checkRequest(msg); err != nil {
		return nil, err
	}
	version, err := s.checkName(ctx, msg)
	if err != nil {
		return nil, err
	}
	in, err := s.newCaptureRequest(ctx, msg)
	if err != nil {
		return nil, err
	}
	e := in.GetEnvironment()
	e.Version = version
	if err := s.Library.Reserve(ctx, e.GetArchive(), e.GetNode(), e.GetName()); err != nil {
		return nil, fmt.Errorf("reserve an archive for environment %s: %w", e.GetName(), err)
	}
	if err := s.Creations.Start(ctx, in); err != nil {
		s.releaseReservation(ctx, e.GetArchive())
		if rpcerror.CodeOf(err) == connect.CodeAlreadyExists {
			return nil, errBeingCreated(e.GetName())
		}
		return nil, fmt.Errorf("create environment %s: %w", e.GetName(), err)
	}
	e.Version++ // the version being created
	res := connect.NewResponse(&v1.CreateEnvironmentResponse{Environment: e})
	res.Header().Set("Location", "/v1/environments/"+e.GetName()) // REST answers with the status 201
	return res, nil
}

// releaseReservation releases the reservation of an archive, even if the request has been cancelled.
func (s Service) releaseReservation(ctx context.Context, archive string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	_ = s.Library.DeleteArchive(ctx, archive) // best effort: the sweep of abandoned archives removes leftovers
}

// checkRequest validates a request by itself, without looking at existing environments.
func checkRequest(req *v1.CreateEnvironmentRequest) error {
	var sources int
	for _, source := range []string{req.GetImage(), req.GetVmImage(), req.GetRun()} {
		if source != "" {
			sources++
		}
	}
	switch {
	case sources == 0:
		return rpcerror.Invalid("environment %s has no source; give one of image, vm_image and run", req.GetName())
	case sources > 1:
		return rpcerror.Invalid("image, vm_image and run are mutually exclusive; set only one")
	case req.GetRun() == "" && req.GetTask() != "":
		return rpcerror.Invalid("task is set without run; set the run of task %s as well", req.GetTask())
	case req.GetRun() != "" && req.GetNode() != "":
		return rpcerror.Invalid("run and node are mutually exclusive: the environment of a task is created on the node that runs it")
	case req.GetImage() == "" && req.GetRegistryAuth() != "":
		return rpcerror.Invalid("registry_auth applies only to image; remove it")
	case req.GetVmImage() != "" && !path.IsAbs(req.GetVmImage()) && !bucketURL().MatchString(req.GetVmImage()):
		return rpcerror.Invalid("vm_image %q is neither an absolute path on a node nor the URL of an object in a bucket, such as s3://images/debian.qcow2", req.GetVmImage())
	}
	return nil
}

// checkName returns the version of the environment that a request replaces, or 0 if there is none. It returns an error if
// the request may not use the name.
func (s Service) checkName(ctx context.Context, req *v1.CreateEnvironmentRequest) (int32, error) {
	ready, err := s.findReady(ctx, req.GetName())
	if err != nil {
		return 0, err
	}
	creation, err := s.Creations.Get(ctx, req.GetName())
	switch {
	case err != nil:
		return 0, err
	case creation.GetState() == v1.EnvironmentCreating:
		return 0, errBeingCreated(req.GetName())
	case ready != nil && !req.GetReplace():
		return 0, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("environment %s already exists (version %d); set replace (--replace) to create a new version", ready.GetName(), ready.GetVersion()))
	}
	return ready.GetVersion(), nil
}

// errBeingCreated returns the error for a name whose environment is already being created.
func errBeingCreated(name string) error {
	return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("environment %s is being created; `switchyard env get %s` shows its progress and `switchyard env delete %s` cancels it", name, name, name))
}

// newCaptureRequest returns the input of the workflow that creates the requested environment.
func (s Service) newCaptureRequest(ctx context.Context, req *v1.CreateEnvironmentRequest) (*historyv1.CaptureRequest, error) {
	in := &historyv1.CaptureRequest{VmImage: req.GetVmImage(), RegistryAuth: req.GetRegistryAuth(), Environment: &v1.Environment{
		Name: req.GetName(), State: v1.EnvironmentCreating, Archive: newArchive(), CreatedBy: auth.From(ctx).Name, CreatedAt: timestamppb.Now(),
		Image: req.GetImage(),
	}}
	if req.GetRun() != "" {
		return in, s.addSource(ctx, in, req)
	}
	need := containerNeed(req.GetImage())
	if req.GetVmImage() != "" {
		need = machineNeed(req.GetVmImage())
		in.Environment.Image = req.GetVmImage()
	}
	var err error
	in.Environment.Node, err = s.chooseNode(ctx, req.GetNode(), need)
	return in, err
}

// addSource adds the source task of an environment and the node that runs it.
func (s Service) addSource(ctx context.Context, in *historyv1.CaptureRequest, req *v1.CreateEnvironmentRequest) error {
	source, err := s.FindSource(ctx, req.GetRun(), req.GetTask(), capturePurpose, isCapturable)
	if err != nil {
		return err
	}
	if !isCapturable(source.Type) {
		return rpcerror.WrongState("task %s of run %s is of type %s; %s (types %s and %s)", source.Task, source.Run, source.Type, capturePurpose, v1.TypeContainer, v1.TypeVPS)
	}
	in.Environment.Run, in.Environment.Task, in.Environment.Node = source.Run, source.Task, source.Node
	in.Chain, in.Claim, in.Type = source.Chain, source.Claim, source.Type
	return nil
}

// isCapturable reports whether an environment can be made from a task of a type.
func isCapturable(taskType string) bool {
	return taskType == v1.TypeContainer || taskType == v1.TypeVPS
}

// newArchive returns a random name for a new archive.
func newArchive() string {
	random := make([]byte, archiveBytes)
	_, _ = rand.Read(random) // never fails
	return hex.EncodeToString(random)
}
