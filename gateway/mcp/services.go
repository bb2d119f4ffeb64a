package mcp

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// Services are the clients of the gateway's services. Tools call them in the name of the caller.
type Services struct {
	Runs      switchyardv1connect.RunServiceClient
	Tasks     switchyardv1connect.TaskServiceClient
	Workflows switchyardv1connect.WorkflowServiceClient
	Nodes     switchyardv1connect.NodeServiceClient
}

// NewServices returns clients for the gateway at a URL.
func NewServices(client connect.HTTPClient, url string) *Services {
	return &Services{
		Runs:      switchyardv1connect.NewRunServiceClient(client, url),
		Tasks:     switchyardv1connect.NewTaskServiceClient(client, url),
		Workflows: switchyardv1connect.NewWorkflowServiceClient(client, url),
		Nodes:     switchyardv1connect.NewNodeServiceClient(client, url),
	}
}

func ofRuns(s *Services) switchyardv1connect.RunServiceClient           { return s.Runs }
func ofTasks(s *Services) switchyardv1connect.TaskServiceClient         { return s.Tasks }
func ofWorkflows(s *Services) switchyardv1connect.WorkflowServiceClient { return s.Workflows }
func ofNodes(s *Services) switchyardv1connect.NodeServiceClient         { return s.Nodes }

// call is a service call with its message types erased.
type call struct {
	method        protoreflect.MethodDescriptor
	input, output proto.Message // empty messages of the types
	do            func(context.Context, *Services, proto.Message) (proto.Message, error)
}

// callOf builds a call from a client method, as in callOf(ofTasks, switchyardv1connect.TaskServiceClient.ListTasks).
func callOf[S, Q, A any](of func(*Services) S, method func(S, context.Context, *connect.Request[Q]) (*connect.Response[A], error)) call {
	input, output := any(new(Q)).(proto.Message), any(new(A)).(proto.Message)
	return call{
		method: methodOf(input.ProtoReflect().Descriptor()), input: input, output: output,
		do: func(ctx context.Context, s *Services, m proto.Message) (proto.Message, error) {
			res, err := method(of(s), ctx, connect.NewRequest(any(m).(*Q)))
			if err != nil {
				return nil, err
			}
			return any(res.Msg).(proto.Message), nil
		},
	}
}

// methodOf returns the method that takes a request. It panics if there is none.
func methodOf(request protoreflect.MessageDescriptor) protoreflect.MethodDescriptor {
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			if method := service.Methods().Get(i); method.Input().FullName() == request.FullName() {
				return method
			}
		}
	}
	panic(fmt.Sprintf("no call takes %s", request.FullName()))
}
