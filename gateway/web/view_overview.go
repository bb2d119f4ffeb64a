package web

import (
	"context"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// overviewView is what the first page shows.
type overviewView struct {
	Nodes []*v1.Node
}

func openOverview(w *Web, req request) viewSource {
	return polled(func(ctx context.Context) (viewData, error) {
		nodes, err := w.services.nodes.ListNodes(ctx, connect.NewRequest(&v1.ListNodesRequest{}))
		if err != nil {
			return viewData{}, err
		}
		return viewData{"Overview", "overview", overviewView{Nodes: nodes.Msg.GetItems()}}, nil
	})
}
