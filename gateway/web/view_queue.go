package web

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// queueFilters are the query parameters of the queue, named as in the API.
var queueFilters = []string{"workflow", "run", "batch"}

// queueView is the data of the queue page.
type queueView struct {
	Queue  *v1.GetQueueResponse // nil if it cannot be read
	Failed string
	// ForNode are the groups that wait for a node, InRun those that wait for something in their runs.
	ForNode, InRun []queueGroup
	Amounts        []queueAmount
	Fields         []filterField
	IsFiltered     bool
	Approvals      countedPart
}

// HasFields reports whether any filter is set.
func (v queueView) HasFields() bool { return v.IsFiltered }

// countedPart is the number of items in a part of a view.
type countedPart struct {
	N      int
	IsMore bool   // the true number is larger
	Failed string // why the number is unknown, or ""
}

// Text returns the number as text, such as "3" or "3 or more".
func (c countedPart) Text() string {
	if c.IsMore {
		return fmt.Sprintf("%d or more", c.N)
	}
	return fmt.Sprint(c.N)
}

// queueGroup is a group of tasks that wait for the same reason.
type queueGroup struct {
	*v1.QueueGroup
	id string
}

// LiveID returns the id of the block.
func (g queueGroup) LiveID() string { return g.id }

// Title describes the reason.
func (g queueGroup) Title() string { return waitTitles[g.GetReason()] }

// waitTitles describes each wait reason.
var waitTitles = map[string]string{
	v1.WaitAsking:     "The placement queue has not answered yet",
	v1.WaitNext:       "Next: a node fits",
	v1.WaitBusy:       "The resources they need are in use",
	v1.WaitAway:       "The nodes that could run them are away",
	v1.WaitImpossible: "No node that is online could run them",
	v1.WaitBackOff:    "Waiting for a retry after a failure",
	v1.WaitHeld:       "Held back by a person",
	v1.WaitPaused:     "Their run is paused",
	v1.WaitLock:       "Another task holds their lock",
	v1.WaitLimit:      "A limit of their task or run is reached",
	v1.WaitTurn:       "Other tasks of their run come first",
}

// Tone returns the CSS class of the reason.
func (g queueGroup) Tone() string {
	switch g.GetReason() {
	case v1.WaitImpossible:
		return "bad"
	case v1.WaitNext, v1.WaitAsking:
		return "busy"
	}
	return "wait"
}

// Asks describes the resource demand of each task in the group.
func (g queueGroup) Asks() string { return demandText(g.GetDemand()) }

// demandText describes the resource demand of a task, such as "2 cores, 512 MiB, label gpu", or returns "" if there is none.
func demandText(d *v1.TaskDemand) string {
	if d == nil {
		return ""
	}
	var asks []string
	if !d.GetRemote() {
		if d.GetCores() > 0 {
			asks = append(asks, plural(figure(d.GetCores()), "core"))
		}
		if d.GetMemoryMb() > 0 {
			asks = append(asks, fmt.Sprintf("%d MiB", d.GetMemoryMb()))
		}
		if gpus := d.GPUAmount(); gpus > 0 {
			asks = append(asks, plural(strconv.FormatFloat(gpus, 'f', -1, 64), "GPU"))
		}
	}
	if d.NumaNode != nil {
		asks = append(asks, fmt.Sprintf("NUMA node %d", d.GetNumaNode()))
	}
	return strings.Join(append(asks, d.GetConstraints()...), ", ")
}

// queueAmount compares the demand for a resource with what is free.
type queueAmount struct {
	Name               string
	Asked, Free, Total string
	Used               amount
	IsShort            bool // the demand exceeds what is free
}

func queueAmounts(q *v1.GetQueueResponse) []queueAmount {
	var amounts []queueAmount
	for _, of := range []struct {
		name, unit string
		size       float64
		amount     *v1.QueueAmount
	}{
		{"slots", "", 1, q.GetSlots()}, {"cores", "", 1, q.GetCores()}, {"memory", " GiB", mibPerGiB, q.GetMemoryMb()}, {"GPUs", "", 1, q.GetGpus()},
	} {
		a := of.amount
		if a.GetAsked() == 0 && a.GetTotal() == 0 {
			continue
		}
		text := func(f float64) string { return figure(f/of.size) + of.unit }
		amounts = append(amounts, queueAmount{
			Name: of.name, Asked: text(a.GetAsked()), Free: text(a.GetFree()), Total: text(a.GetTotal()),
			Used:    amount{of.name, (a.GetTotal() - a.GetFree()) / of.size, a.GetTotal() / of.size, of.unit},
			IsShort: a.GetAsked() > a.GetFree(),
		})
	}
	return amounts
}

func openQueue(w *Web, req request) viewSource {
	q := req.query
	show := func(loaded []loadedPart) viewData {
		view := queueView{IsFiltered: isFiltered(q), Approvals: countApprovals(loaded[1]), Fields: []filterField{
			{Name: "workflow", Label: "Workflow", Value: q.Get("workflow")},
			{Name: "run", Label: "Run", Value: q.Get("run")},
			{Name: "batch", Label: "Batch", Value: q.Get("batch")},
		}}
		view.Failed = loaded[0].failure()
		if queue, ok := loaded[0].data.(*v1.GetQueueResponse); ok {
			view.Queue, view.Amounts = queue, queueAmounts(queue)
			for _, g := range queueGroups(queue) {
				if v1.WaitsForNode(g.GetReason()) {
					view.ForNode = append(view.ForNode, g)
				} else {
					view.InRun = append(view.InRun, g)
				}
			}
		}
		return viewData{"Queue", "queue", view}
	}
	return newPartsSource(show,
		part{pollInterval, func(ctx context.Context) (any, error) {
			res, err := w.services.tasks.GetQueue(ctx, connect.NewRequest(&v1.GetQueueRequest{Workflow: q.Get("workflow"), Run: q.Get("run"), Batch: q.Get("batch")}))
			if err != nil {
				return nil, err
			}
			return res.Msg, nil
		}},
		part{2 * time.Second, func(ctx context.Context) (any, error) { return approvalTasks(ctx, w.services, approvalsPageSize) }},
	)
}

// countApprovals returns the number of approval tasks in a part that lists them.
func countApprovals(p loadedPart) countedPart {
	counted := countedPart{Failed: p.failure()}
	if tasks, ok := p.data.(*v1.ListTasksResponse); ok {
		counted.N, counted.IsMore = len(tasks.GetItems()), tasks.GetNextPageToken() != ""
	}
	return counted
}

// failure returns why a part has no data, or "" if it has.
func (p loadedPart) failure() string {
	switch {
	case p.err != nil:
		return messageOf(p.err)
	case !p.isLoaded:
		return "it is still being read"
	}
	return ""
}

// queueGroups returns the groups with ids that are independent of the number of waiting tasks.
func queueGroups(q *v1.GetQueueResponse) []queueGroup {
	groups, seen := make([]queueGroup, 0, len(q.GetGroups())), map[string]int{}
	for _, g := range q.GetGroups() {
		sum := fnv.New64a()
		_, _ = fmt.Fprintf(sum, "%s %s %s", g.GetReason(), g.GetType(), demandText(g.GetDemand())) // never fails
		id := fmt.Sprintf("group-%x", sum.Sum64())
		if seen[id]++; seen[id] > 1 {
			id = fmt.Sprintf("%s-%d", id, seen[id])
		}
		groups = append(groups, queueGroup{g, id})
	}
	return groups
}
