package vps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// taskName is the name of the task of a machine, and the default name of a machine.
const taskName = v1.TypeVPS

// keyHeader is the header that may carry the idempotency key of a request.
const keyHeader = "Idempotency-Key"

// CreateVps starts a run with a machine as its only task.
func (s Service) CreateVps(ctx context.Context, req *connect.Request[v1.CreateVpsRequest]) (*connect.Response[v1.CreateVpsResponse], error) {
	msg := req.Msg
	var pair keyPair
	if msg.GetGenerateKey() {
		if err := checkGenerateKey(msg, req.Header().Get(keyHeader)); err != nil {
			return nil, err
		}
		var err error
		if pair, err = newKeyPair(cmp.Or(msg.GetName(), taskName)); err != nil {
			return nil, err
		}
		msg = proto.CloneOf(msg)
		msg.SshPublicKey = pair.public
	}
	def, err := definitionOf(msg)
	if err != nil {
		return nil, err
	}
	submitted, err := s.Runs.Submit(ctx, &v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Definition{Definition: def}, Options: msg.GetOptions(), Batch: msg.GetBatch(), IdempotencyKey: msg.GetIdempotencyKey(),
	})
	if problems, ok := errors.AsType[source.Problems](err); ok {
		problems = problemsOfRequest(problems)
		return nil, rpcerror.InvalidWith(problems, &v1.ValidationFailure{Problems: problems})
	}
	if err != nil {
		return nil, err
	}
	res := connect.NewResponse(&v1.CreateVpsResponse{
		Id: submitted.GetId(), Task: taskName, Existed: submitted.GetExisted(), Warnings: problemsOfRequest(submitted.GetWarnings()),
		PrivateKey: pair.private, PublicKey: pair.public,
	})
	if !submitted.GetExisted() {
		res.Header().Set("Location", "/v1/vps/"+submitted.GetId()) // REST answers with the status 201
	}
	return res, nil
}

// checkGenerateKey refuses to generate a key pair that could not be handed out, or that would open nothing.
func checkGenerateKey(req *v1.CreateVpsRequest, keyInHeader string) error {
	switch {
	case req.GetSshPublicKey() != "":
		return rpcerror.Invalid("ssh_public_key and generate_key are mutually exclusive; set only one")
	case req.GetIdempotencyKey() != "" || keyInHeader != "":
		return rpcerror.Invalid("generate_key and an idempotency key are mutually exclusive: the private key is returned only once, so a repeated request could not return it; create a key pair with ssh-keygen and send its public key")
	}
	return nil
}

// definitionOf returns the definition of the run of a machine. The definition is not validated.
func definitionOf(req *v1.CreateVpsRequest) (*v1.Definition, error) {
	spec, task := &v1.VpsSpec{}, &v1.TaskDefinition{Type: v1.TypeVPS}
	copySame(req, spec)
	copySame(req, task)
	text, err := protojson.Marshal(spec)
	if err != nil {
		return nil, rpcerror.Invalid("cannot encode the request as JSON: %v", err)
	}
	task.Spec = &structpb.Struct{}
	if err := protojson.Unmarshal(text, task.Spec); err != nil {
		return nil, fmt.Errorf("build the spec of a machine: %w", err)
	}
	return &v1.Definition{Name: cmp.Or(req.GetName(), taskName), Tasks: map[string]*v1.TaskDefinition{taskName: task}}, nil
}

// copySame copies the fields of a request to the fields of the same name, except for those that concern the run.
func copySame(req *v1.CreateVpsRequest, to proto.Message) {
	target := to.ProtoReflect()
	proto.CloneOf(req).ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if same := target.Descriptor().Fields().ByName(field.Name()); same != nil && !isOfRun(field.Name()) {
			target.Set(same, value)
		}
		return true
	})
}

// isOfRun reports whether a field of a request concerns its run. The `batch` field of a TaskDefinition, which concerns
// instances, and the name of a task in a list are unrelated.
func isOfRun(field protoreflect.Name) bool {
	switch field {
	case "name", "options", "idempotency_key", "batch", "generate_key":
		return true
	}
	return false
}

// problemsOfRequest moves the paths of problems from the definition to the request.
func problemsOfRequest(problems source.Problems) source.Problems {
	task := source.Root.Field("tasks").Key(taskName)
	var moved source.Problems
	for _, problem := range problems {
		problem = proto.CloneOf(problem)
		for _, around := range []*source.Path{task.Field("spec"), task} {
			if path, inside := strings.CutPrefix(problem.GetPath(), around.String()+"."); inside {
				problem.Path = path
				break
			}
		}
		problem.Message = strings.ReplaceAll(problem.GetMessage(), "spec.", "")
		moved = append(moved, problem)
	}
	return moved
}
