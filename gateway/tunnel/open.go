package tunnel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/sessions/ticket"
	"switchyard/activities/sessions/wire"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/audit"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// openTimeout bounds opening a stream.
	openTimeout = 30 * time.Second
	// patience is how long a session waits for the link of its node. A node whose link was there within awayFor is expected
	// back.
	patience, awayFor = 10 * time.Second, time.Minute
	// lookPause is the pause between two look-ups of a node.
	lookPause = 200 * time.Millisecond
)

// addressKey is the context key of a client address.
type addressKey struct{}

// WithAddress returns a context that carries the address of a client for the audit log.
func WithAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// Open opens a stream to the attempt that a client's header selects, on behalf of the caller of ctx. The node's reply has
// already been read from the stream. The audit log gets one entry when the stream opens and one when it closes. ctx only
// bounds opening. Errors have Connect codes.
func (h *Hub) Open(ctx context.Context, asked *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	from, _ := ctx.Value(addressKey{}).(string)
	entry := audit.Session{Kind: asked.GetKind(), Run: asked.GetRunId(), Task: asked.GetTask(), Path: asked.GetPath(), Port: asked.GetPort(), From: from}
	if !wire.IsKind(entry.Kind) {
		entry.Kind = "of an unknown kind"
	}
	leave, err := h.callers.enter(auth.From(ctx).Name, h.config.MaxOfCaller)
	if err != nil {
		entry.Err = err
		h.config.Recorder.RecordSession(ctx, entry)
		return nil, nil, err
	}
	conn, reply, err := h.openAudited(ctx, asked, &entry)
	if err != nil {
		leave()
		entry.Err = err
		h.config.Recorder.RecordSession(ctx, entry)
		return nil, nil, err
	}
	began, caller := h.config.Now(), context.WithoutCancel(ctx)
	h.config.Recorder.RecordOpenedSession(caller, entry) // a killed gateway cannot record the end
	isOpen := wire.OnClose(conn, func(sent, received int64) {
		leave()
		entry.Lasted, entry.Sent, entry.Received = h.config.Now().Sub(began), sent, received
		h.config.Recorder.RecordSession(caller, entry)
	})
	if !isOpen {
		leave()
		entry.Err = unavailable("the session was lost while opening")
		h.config.Recorder.RecordSession(caller, entry)
		return nil, nil, entry.Err
	}
	return conn, reply, nil
}

// openAudited opens a stream and completes its audit entry.
func (h *Hub) openAudited(ctx context.Context, asked *v1.SessionHeader, entry *audit.Session) (wire.Conn, *v1.SessionReply, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	caller := auth.From(ctx)
	if !caller.Role.Includes(v1.Role_ROLE_USER) {
		return nil, nil, denied("sessions need the role %s; %s has the role %s", v1.RoleUser, callerName(caller), caller.Role.Word())
	}
	if err := errors.Join(h.refuseObserver(), checkHeader(asked)); err != nil {
		return nil, nil, err
	}
	run, err := h.config.Index.Resolve(ctx, asked.GetRunId())
	if err != nil {
		return nil, nil, rpcerror.ToConnect(err)
	}
	entry.Run = run
	desc, err := h.config.Reader.Describe(ctx, run)
	if err != nil {
		return nil, nil, rpcerror.ToConnect(err)
	}
	found, err := h.find(ctx, desc, asked.GetTask(), sessionPurpose, func(attempt) bool { return true })
	if err != nil {
		return nil, nil, rpcerror.ToConnect(err)
	}
	entry.Task, entry.Node = found.name, found.node
	in, err := h.config.Reader.Input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		return nil, nil, rpcerror.ToConnect(err)
	}
	isApproved := h.config.ApproveUserRuns || in.GetWorkflows() != nil
	if isApproved && caller.NeedsApproval() && changesTask(asked.GetKind()) && !v1.Lasts(typeIn(in.GetDefinition(), found.name)) {
		return nil, nil, denied("the approval of run %s does not cover what a session changes in task %s; ask an operator to open it, or submit a machine (a task of type %s), which is approved to be entered",
			run, found.name, v1.TypeVPS)
	}
	header := proto.CloneOf(asked)
	header.RunId, header.Task, header.Chain, header.Claim, header.Node = run, found.name, in.GetChain(), found.claim, found.node
	header.By, header.Ticket = caller.Name, nil
	conn, reply, err := h.openOnNode(ctx, header)
	if err != nil {
		return nil, nil, codedError(err)
	}
	reply.RunId, reply.Task, reply.Claim, reply.Node = run, found.name, found.claim, found.node
	return conn, reply, nil
}

// changesTask reports whether a session of a kind can change what a task does.
func changesTask(kind string) bool { return kind != wire.KindConnect && kind != wire.KindReadTar }

func callerName(p *auth.Principal) string {
	if p.Name == "" {
		return "the caller"
	}
	return p.Name
}

// checkHeader returns an error if the header of a client is malformed.
func checkHeader(header *v1.SessionHeader) error {
	if err := wire.CheckHeader(header); err != nil {
		return rpcerror.Invalid("%w", err)
	}
	if task := header.GetTask(); len(task) > maxTaskName {
		return rpcerror.Invalid("no task has a name of %d characters", len(task))
	}
	return nil
}

// maxTaskName bounds the name of a task or instance to look up, in bytes.
const maxTaskName = 512

// openOnNode opens a stream on the node of a header, directly or through the gateway that the node is connected to. It waits
// up to patience for a node that is expected to connect.
func (h *Hub) openOnNode(ctx context.Context, header *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	isExpected := false
	for until := time.Now().Add(patience); ; {
		if l := h.linkOf(header.GetNode()); l != nil {
			return h.openLocal(ctx, l, header)
		}
		at, err := h.location(ctx, header.GetNode())
		if err != nil {
			return nil, nil, err
		}
		if at.GetGateway() != "" && at.GetGateway() != h.name {
			conn, reply, err := h.openAtPeer(ctx, at, header)
			if !isAway(err) || time.Now().After(until) && h.linkOf(header.GetNode()) == nil {
				return conn, reply, err
			}
		} else {
			isExpected = isExpected || h.isExpected(ctx, header.GetNode(), at)
			if !isExpected || time.Now().After(until) {
				return nil, nil, notConnected(header.GetNode())
			}
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-h.stopping:
			return nil, nil, errStopping()
		case <-time.After(lookPause):
		}
	}
}

// isExpected reports whether a node without a link may connect soon: it was connected recently, or it sends heartbeats.
// The latter is true of a worker that has just started, and of every node after this gateway was away.
func (h *Hub) isExpected(ctx context.Context, node string, at *v1.LinkLocation) bool {
	if h.config.Now().Sub(at.GetConnectedAt().AsTime()) <= awayFor {
		return true
	}
	n, err := h.config.Nodes.Get(ctx, node)
	return err == nil && n.GetState() != v1.NodeOffline
}

// location returns the stored location of a node, or an empty one if there is none.
func (h *Hub) location(ctx context.Context, node string) (*v1.LinkLocation, error) {
	at := &v1.LinkLocation{}
	err := h.config.Store.GetMessage(ctx, storekey.Link(node), at)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("look up which gateway node %s is connected to: %w", node, err)
	}
	return at, nil
}

// notConnected returns the error for a node without a link.
func notConnected(node string) error {
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf(
		"node %s is not connected to a gateway, so sessions cannot reach it; start its worker with --gateway URL (or $SWITCHYARD_GATEWAY) and check its log", node))
}

// openLocal opens a stream on a node that is connected to this gateway.
func (h *Hub) openLocal(ctx context.Context, l *link, header *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	header = proto.CloneOf(header)
	if err := ticket.Sign(l.key, header, h.config.Now()); err != nil {
		return nil, nil, err
	}
	conn, err := l.session.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	reply, err := wire.Request(ctx, conn, header)
	if err != nil {
		return nil, nil, err
	}
	return conn, reply, nil
}
