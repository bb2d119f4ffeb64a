package gateway

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// watchMessageBytes is what the tasks of one message may take; gRPC clients
// refuse messages over 4 MiB.
const watchMessageBytes = 1 << 20

// WatchRun sends a run as it is, then what changes, and ends with it.
func (g *Gateway) WatchRun(ctx context.Context, req *connect.Request[v1.WatchRunRequest], stream *connect.ServerStream[v1.WatchRunResponse]) error {
	id, err := g.resolve(ctx, req.Msg.GetId())
	if err != nil {
		return err
	}
	p, release := g.pollers.watch(id)
	defer release()
	if err := sendHeaders(stream); err != nil {
		return err
	}
	var seen int64
	for {
		n := p.since(seen)
		if n.version > seen {
			for _, m := range watchMessages(n) {
				if err := stream.Send(m); err != nil {
					return err
				}
			}
			seen = n.version
		}
		if n.done {
			return g.ended(n.err)
		}
		select {
		case <-n.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.stopping:
			return errStopping()
		}
	}
}

// sendHeaders tells the client that its call is being answered; clients wait for
// that, and the first message may be long in coming.
func sendHeaders[M any](stream *connect.ServerStream[M]) error { return stream.Send(nil) }

// ended is the error of a stream whose poller has ended with err.
func (g *Gateway) ended(err error) error {
	select {
	case <-g.stopping:
		return errStopping()
	default:
		return err
	}
}

// watchMessages puts news into messages of bounded size. A task with many instances is in several, with some of its
// instances in each.
func watchMessages(n news) []*v1.WatchRunResponse {
	var messages []*v1.WatchRunResponse
	run, size := n.run, 0
	run.Tasks = map[string]*v1.Task{}
	flush := func() {
		messages = append(messages, &v1.WatchRunResponse{Run: run, TaskCount: n.total, Counts: n.counts})
		run, size = headerOf(run), 0
		run.Tasks = map[string]*v1.Task{}
	}
	for _, t := range n.tasks {
		taskSize := proto.Size(t.task) + len(t.name)
		if size+taskSize > watchMessageBytes && len(run.Tasks) > 0 {
			flush()
		}
		size += taskSize
		run.Tasks[t.name] = t.task
		for rest := t.instances; len(rest) > 0; {
			k := 0
			for k < len(rest) && (k == 0 || size < watchMessageBytes) {
				size += proto.Size(rest[k])
				k++
			}
			task := shallow(t.task)
			task.Instances = rest[:k]
			run.Tasks[t.name] = task
			if rest = rest[k:]; len(rest) > 0 {
				flush()
				size = taskSize
			}
		}
	}
	flush()
	return messages
}
