package rundetails

import (
	"context"
	"log/slog"
	"strings"
	"unicode"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store"
	"switchyard/gateway/paging"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// instances lists the instances of fanned-out tasks.
type instances struct {
	index   *runindex.Index
	reader  *runview.Reader
	store   *store.Store
	results results
	log     *slog.Logger
}

const (
	// defaultInstancePage is the number of instances on a page if the request names no size.
	defaultInstancePage = 1000
	// instancesAtOnce is the number of instances that are read at once for a page that is cut by its size.
	instancesAtOnce = 1000
	// maxSearched bounds how many instances are read for a page of those in one state.
	maxSearched = 10_000
)

// ListInstances lists the instances of a fanned-out task, optionally only those in one state, by number and with their
// whole results. The instances of a large fan-out come from the children of the run.
func (in instances) ListInstances(ctx context.Context, req *connect.Request[v1.ListInstancesRequest]) (*connect.Response[v1.ListInstancesResponse], error) {
	id, err := in.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	task := req.Msg.GetTask()
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	at, err := pages.DecodeInstance(req.Msg.GetPageToken(), id, task)
	if err != nil {
		return nil, err
	}
	if req.Msg.GetPageToken() == "" {
		at = int(req.Msg.GetFirst())
	}
	v, err := in.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if v.Tasks[task] == nil {
		return nil, v.NoTask(task)
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultInstancePage
	}
	res, size, state := &v1.ListInstancesResponse{}, 0, req.Msg.GetState()
	if state != "" && v.Tasks[task].Brief.GetCounts()[state] == 0 {
		return connect.NewResponse(res), nil
	}
	items := in.itemsOf(ctx, v, task)
	for last := at + maxSearched; len(res.Items) < limit && at < last; {
		atOnce := instancesAtOnce
		if state == "" {
			atOnce = min(limit-len(res.Items), instancesAtOnce)
		}
		some, err := in.reader.Instances(ctx, v, task, at, atOnce)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			return connect.NewResponse(res), nil
		}
		for _, i := range some {
			if len(res.Items) == limit {
				break
			}
			at = int(i.Instance.GetIndex()) + 1
			if state != "" && i.Brief.GetState() != state {
				continue
			}
			whole := in.results.instance(ctx, id, task, i)
			if index := int(whole.GetIndex()); index < len(items) {
				whole.Item = shortItem(items[index])
			}
			if size += proto.Size(whole); size > paging.MaxBytes && len(res.Items) > 0 {
				res.NextPageToken = pages.EncodeInstance(id, task, int(i.Instance.GetIndex()))
				return connect.NewResponse(res), nil
			}
			res.Items = append(res.Items, whole)
		}
	}
	if at < int(v.Tasks[task].Task.GetCount()) {
		res.NextPageToken = pages.EncodeInstance(id, task, at)
	}
	return connect.NewResponse(res), nil
}

// maxItem is the length, in characters, to which lists truncate an item.
const maxItem = 80

// itemsOf returns the `foreach` list behind the instances of a task, or nil if there is none or it cannot be read.
// Instances are then shown without their items.
func (in instances) itemsOf(ctx context.Context, v *runview.View, task string) []*structpb.Value {
	items, err := in.reader.Items(ctx, v, task)
	if err == nil && items.GetKey() != "" {
		var stored historyv1.ItemList
		err = in.store.GetMessage(ctx, items.GetKey(), &stored)
		items = &historyv1.Items{List: &structpb.ListValue{Values: stored.GetItems()}}
	}
	if err != nil {
		in.log.Debug("the items of a task cannot be read", "run", v.Run.GetId(), "task", task, "error", err)
	}
	return items.GetList().GetValues()
}

// shortItem renders an item as one line of text.
func shortItem(item *structpb.Value) string {
	text := []rune(strings.Join(strings.FieldsFunc(condition.Text(item), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar
	}), " "))
	if len(text) > maxItem {
		return string(text[:maxItem-3]) + "..."
	}
	return string(text)
}
