package secrets

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
	"switchyard/workflows/secretref"
)

// Releaser implements SecretService. It is safe for concurrent use.
type Releaser struct {
	Service
	// Attempts finds the running attempts of nodes; Reader reads the inputs of runs.
	Attempts nodeaccess.Attempts
	Reader   *runview.Reader
	// Locked is set if authentication is on. A run without a role then belongs to a schedule, which only operators can
	// store.
	Locked bool
}

var _ switchyardv1connect.SecretServiceHandler = Releaser{}

// ReleaseSecret releases a secret to the node that the caller's token belongs to.
func (r Releaser) ReleaseSecret(ctx context.Context, req *connect.Request[v1.ReleaseSecretRequest]) (*connect.Response[v1.ReleaseSecretResponse], error) {
	switch node, err := nodeaccess.Node(ctx); {
	case err != nil:
		return nil, err
	case node != "" && node != req.Msg.GetNode():
		return nil, denied("the token belongs to node %s, but the attempt to node %s", node, req.Msg.GetNode())
	}
	res, err := r.Release(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

// Release returns the value of a secret for an attempt of a node. It requires that the node is running the attempt, that its
// task names the secret, and that the submitter of its run may use the secret.
func (r Releaser) Release(ctx context.Context, req *v1.ReleaseSecretRequest) (*v1.ReleaseSecretResponse, error) {
	if err := r.checkEnabled(); err != nil {
		return nil, err
	}
	desc, err := r.Attempts.Find(ctx, nodeaccess.Attempt{Node: req.GetNode(), Run: req.GetRun(), Task: req.GetTask(), Claim: req.GetClaim()})
	if err != nil {
		return nil, fmt.Errorf("verify that %s of run %s runs on node %s: %w", req.GetTask(), req.GetRun(), req.GetNode(), err)
	}
	if desc == nil {
		return nil, rpcerror.WrongState("dispatch %d of %s of run %s is not running on node %s; secrets are released only to running attempts", req.GetClaim(), req.GetTask(), req.GetRun(), req.GetNode())
	}
	in, err := r.Reader.DefinedInput(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return nil, err
	}
	if in.GetChain() != req.GetChain() {
		return nil, rpcerror.WrongState("run %s was reset after dispatch %d of %s; secrets are released only to attempts of the current chain", req.GetRun(), req.GetClaim(), req.GetTask())
	}
	task, _, _ := storekey.ParseInstanceName(req.GetTask())
	def := v1.TaskNamed(in.GetDefinition(), task)
	names := append(slices.Collect(maps.Values(def.GetSecretEnv())), definition.GitSource(in, def).GetSecret())
	if !slices.Contains(names, secretref.Reference{Kind: secretref.Store, Name: req.GetSecret()}.String()) {
		return nil, denied("task %s of run %s does not name store:%s in its secretEnv, nor in source.secret", task, req.GetRun(), req.GetSecret())
	}
	known, err := r.Vault.Get(ctx, req.GetSecret())
	if err != nil {
		return nil, r.toConnectError(ctx, req.GetSecret(), err)
	}
	if err := r.checkRole(in.GetByRole(), known); err != nil {
		return nil, err
	}
	value, opened, err := r.Vault.Open(ctx, req.GetSecret())
	if err != nil {
		return nil, r.toConnectError(ctx, req.GetSecret(), err)
	}
	// The secret may have been set again in between, with another role.
	if err := r.checkRole(in.GetByRole(), opened); err != nil {
		return nil, err
	}
	return &v1.ReleaseSecretResponse{Value: value, Version: opened.GetVersion()}, nil
}

// checkRole returns an error if runs submitted in a role may not use a secret.
func (r Releaser) checkRole(role string, s *v1.Secret) error {
	if role == "" && r.Locked {
		role = v1.RoleOperator
	}
	if role == "" || v1.ParseRole(role).Includes(v1.ParseRole(s.GetRole())) {
		return nil
	}
	return denied("secret %s requires the role %s, but the run was submitted with the role %s; an operator can lower it with `switchyard secrets set %s --role %s` or submit the run", s.GetName(), s.GetRole(), role, s.GetName(), role)
}

func denied(format string, args ...any) error {
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(format, args...))
}
