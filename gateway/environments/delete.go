package environments

import (
	"context"
	"errors"
	"strings"

	"connectrpc.com/connect"

	"switchyard/activities/executor"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// maxUsers bounds how many runs an error names as users of an environment.
const maxUsers = 5

// DeleteEnvironment cancels the creation of an environment if one is in progress, or else deletes the environment.
func (s Service) DeleteEnvironment(ctx context.Context, req *connect.Request[v1.DeleteEnvironmentRequest]) (*connect.Response[v1.DeleteEnvironmentResponse], error) {
	name := req.Msg.GetName()
	e, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	res := connect.NewResponse(&v1.DeleteEnvironmentResponse{Environment: e})
	if e.GetState() == v1.EnvironmentCreating || e.GetCreation().GetState() == v1.EnvironmentCreating {
		return res, s.Creations.End(ctx, name)
	}
	if e.GetState() == v1.EnvironmentReady {
		if err := s.delete(ctx, name, req.Msg.GetForce()); err != nil {
			return nil, err
		}
	}
	if e.GetState() == v1.EnvironmentFailed || e.GetCreation() != nil {
		return res, s.Creations.Forget(ctx, name)
	}
	return res, nil
}

// delete deletes a ready environment. Without force, it refuses if an open run uses the environment.
func (s Service) delete(ctx context.Context, name string, force bool) error {
	if !force {
		users, err := s.Usage.Runs(ctx, name, maxUsers+1)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			return errInUse(name, users)
		}
	}
	_, err := s.Library.Delete(ctx, name)
	if errors.Is(err, executor.ErrNoEnvironment) {
		return nil // another request has deleted it
	}
	return err
}

// errInUse returns the error for an environment that open runs name.
func errInUse(name string, users []string) error {
	who := "open run " + users[0] + " names it"
	if len(users) > maxUsers {
		who = "open runs " + strings.Join(users[:maxUsers], ", ") + " and others name it"
	} else if len(users) > 1 {
		who = "open runs " + strings.Join(users, ", ") + " name it"
	}
	return rpcerror.WrongState("environment %s is in use: %s; wait for them to end or use force (--force): running tasks keep it, but attempts that start later fail", name, who)
}
