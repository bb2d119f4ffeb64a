package drill

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"switchyard/dev/processes"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// deadListener freezes a worker's polls for tasks while its other calls, such as heartbeats, arrive. Tasks dispatched
// to it start elsewhere, spend no attempt and count as suspicions.
func deadListener(y *Cluster) error {
	if err := y.start(); err != nil {
		return err
	}
	calls, err := startCalls(y.temporal)
	if err != nil {
		return err
	}
	defer calls.close()
	// The worker reaches the server through its own proxy and then through this one.
	if _, err := y.proxy("a/temporal", calls.address); err != nil {
		return err
	}
	if err := y.startWorker("a", "--label", "x"); err != nil {
		return err
	}
	if err := y.awaitNodes("a"); err != nil {
		return err
	}
	calls.deaf.Store(true)
	d := y.crowd("unheard", 4, job{ticks: 1, label: "x"})
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	err = y.eventually("the tasks have been given to a", func() (bool, error) {
		r, err := y.get(id)
		if err != nil {
			return false, err
		}
		given := 0
		for _, task := range r.Tasks {
			if task.Node == "a" {
				given++
			}
		}
		return given == len(d.Tasks), nil
	})
	if err != nil {
		return err
	}
	if err := y.startWorker("b", "--label", "x"); err != nil {
		return err
	}
	if err := y.awaitNodes("b"); err != nil {
		return err
	}
	r, err := y.finished(id)
	if err != nil {
		return err
	}
	for name, task := range r.Tasks {
		if task.Attempt != 0 || task.Suspicions == 0 || task.Node != "b" {
			return fmt.Errorf("task %s: attempt %d, %d suspicions, on %q; want attempt 0 and a suspicion, on b", name, task.Attempt, task.Suspicions, task.Node)
		}
	}
	if err := y.awaitNodes("a"); err != nil { // its heartbeat arrives
		return err
	}
	calls.deaf.Store(false)
	again, err := y.submit(y.crowd("again", 2, job{node: "a"}))
	if err != nil {
		return err
	}
	_, err = y.finished(again)
	return err
}

// calls forwards the calls of a client to a Temporal server. All of them are unary.
type calls struct {
	address string
	server  *grpc.Server
	to      *grpc.ClientConn
	// deaf holds back polls for tasks and the replies to pending ones.
	deaf atomic.Bool
}

func startCalls(target string) (*calls, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &calls{address: listener.Addr().String()}
	c.to, err = grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{}), grpc.MaxCallRecvMsgSize(maxCallBytes), grpc.MaxCallSendMsgSize(maxCallBytes)))
	if err != nil {
		return nil, err
	}
	c.server = grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.MaxRecvMsgSize(maxCallBytes), grpc.UnknownServiceHandler(c.pass))
	go func() { _ = c.server.Serve(listener) }() // until the server is stopped
	return c, nil
}

// maxCallBytes exceeds the size of any Temporal message.
const maxCallBytes = 128 << 20

func (c *calls) close() {
	c.server.Stop()
	_ = c.to.Close() // no call is in flight
}

// pass forwards one call.
func (c *calls) pass(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	method, _ := grpc.MethodFromServerStream(stream) // every stream of a server has a method
	poll := strings.HasSuffix(method, "/PollActivityTaskQueue")
	var request, answer []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if poll && c.deaf.Load() {
		return c.hang(ctx)
	}
	said, _ := metadata.FromIncomingContext(ctx)
	var header, trailer metadata.MD
	err := c.to.Invoke(metadata.NewOutgoingContext(ctx, said), method, &request, &answer, grpc.Header(&header), grpc.Trailer(&trailer))
	if poll && c.deaf.Load() {
		return c.hang(ctx)
	}
	stream.SetTrailer(trailer)
	if err != nil {
		return err
	}
	if err := stream.SetHeader(header); err != nil {
		return err
	}
	return stream.SendMsg(&answer)
}

// hang holds a call until its caller gives up or calls are served again. In the latter case, the caller must retry.
func (c *calls) hang(ctx context.Context) error {
	for c.deaf.Load() {
		if err := processes.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
	return status.Error(codes.Unavailable, "the call was held back")
}

// bytesCodec passes messages through unchanged.
type bytesCodec struct{}

var _ encoding.CodecV2 = bytesCodec{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
