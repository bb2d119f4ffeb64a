package web

import (
	"context"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// deadlineField limits how long tasks of a draining node may run, such as "30m"; empty means no limit.
const deadlineField = "deadline"

// nodeActions are the actions on nodes. Their field name is the name of the node.
var nodeActions = []actionKind{
	{
		verb: "drain-node", label: "Drain", call: nodeService + "DrainNode", reason: true,
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			req := &v1.DrainNodeRequest{Name: form.Get("name"), Reason: form.Get(reasonField)}
			if text := strings.TrimSpace(form.Get(deadlineField)); text != "" {
				d, err := time.ParseDuration(text)
				if err != nil || d < 0 {
					return "", "", rpcerror.Invalid("the deadline %q is not a duration such as 30m or 2h", text)
				}
				req.Deadline = durationpb.New(d)
			}
			_, err := s.nodes.DrainNode(ctx, connect.NewRequest(req))
			return "Node " + form.Get("name") + " is draining and gets no new tasks.", "", err
		},
	},
	{
		verb: "undrain-node", label: "Undrain", call: nodeService + "UndrainNode",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.nodes.UndrainNode(ctx, connect.NewRequest(&v1.UndrainNodeRequest{Name: form.Get("name")}))
			return "Node " + form.Get("name") + " is back in service.", "", err
		},
	},
	{
		verb: "remove-node", label: "Remove", call: nodeService + "RemoveNode", asks: "Forget node %s? It appears again once its worker registers.",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.nodes.RemoveNode(ctx, connect.NewRequest(&v1.RemoveNodeRequest{Name: form.Get("name")}))
			return "Node " + form.Get("name") + " has been removed.", "/ui/nodes", err
		},
	},
}
