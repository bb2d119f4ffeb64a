package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"switchyard/drawing/graph"
	"switchyard/drawing/report"
	"switchyard/drawing/svg"
	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// reportPage is the page size for reading instances.
const reportPage = 1000

// serveReport serves a run as one self-contained HTML file.
func (w *Web) serveReport(rw http.ResponseWriter, r *http.Request) {
	run, instances, err := w.readRun(r.Context(), r.PathValue("run"))
	if err != nil {
		w.writeError(rw, r, err)
		return
	}
	made, now := w.Now().UTC(), w.Now()
	if end := run.GetCompletedAt(); end != nil {
		now = end.AsTime()
	}
	nodes := graph.NodesOf(run, time.Time{})
	axis := timeline.NewAxis(run.GetCreatedAt().AsTime(), now, !v1.IsRunTerminal(run.GetState()))
	layout := graph.NewLayout(nodes)
	order := make([]string, 0, len(nodes))
	for _, i := range layout.Order {
		order = append(order, nodes[i].Name)
	}
	shown := withInstances(run, instances)
	file := report.Report{
		Run: run, Nodes: nodes, Layout: layout, Rows: svg.Rows(shown, nodes, layout.Order, strips(run, instances, axis, now), now), Axis: axis, Now: made, PageURL: w.ExternalURL(),
	}
	file.Failures, file.FailureCount = report.FailuresOf(run, order, failedOf(instances))
	for i := range file.Failures {
		w.addLastLines(r.Context(), run.GetId(), &file.Failures[i])
	}
	var html bytes.Buffer
	if err := file.Write(&html); err != nil {
		w.writeError(rw, r, err)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", run.GetId()+".html"))
	_, _ = rw.Write(html.Bytes())
}

// readRun reads a run with its tasks, without their output, and the instances of its fan-outs by task.
func (w *Web) readRun(ctx context.Context, id string) (*v1.Run, map[string][]*v1.Instance, error) {
	var run *v1.Run
	for token := ""; ; {
		res, err := w.services.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: id, Brief: true, PageToken: token}))
		if err != nil {
			return nil, nil, err
		}
		if run == nil {
			run = res.Msg.GetRun()
			run.Tasks = orEmpty(run.GetTasks())
		}
		for name, t := range res.Msg.GetRun().GetTasks() {
			run.Tasks[name] = t
		}
		if token = res.Msg.GetNextPageToken(); token == "" {
			break
		}
	}
	instances := map[string][]*v1.Instance{}
	for name, t := range run.GetTasks() {
		t.Instances = nil
		if t.GetCount() == 0 {
			continue
		}
		instances[name] = make([]*v1.Instance, t.GetCount())
		for token := ""; ; {
			res, err := w.services.runs.ListInstances(ctx, connect.NewRequest(&v1.ListInstancesRequest{Id: run.GetId(), Task: name, PageSize: reportPage, PageToken: token}))
			if err != nil {
				return nil, nil, err
			}
			for _, i := range res.Msg.GetItems() {
				if int(i.GetIndex()) < len(instances[name]) {
					instances[name][i.GetIndex()] = i
				}
			}
			if token = res.Msg.GetNextPageToken(); token == "" {
				break
			}
		}
	}
	return run, instances, nil
}

func orEmpty(tasks map[string]*v1.Task) map[string]*v1.Task {
	if tasks == nil {
		return map[string]*v1.Task{}
	}
	return tasks
}

// failedOf returns up to report.MaxFailures failed instances of each task.
func failedOf(instances map[string][]*v1.Instance) map[string][]*v1.Instance {
	failed := map[string][]*v1.Instance{}
	for name, all := range instances {
		for _, i := range all {
			if i != nil && v1.HasTaskFailed(i) && len(failed[name]) < report.MaxFailures {
				failed[name] = append(failed[name], i)
			}
		}
	}
	return failed
}

// addLastLines reads the last lines that a failed task or instance printed. A fanned-out task has no output of its own.
func (w *Web) addLastLines(ctx context.Context, run string, f *report.Failure) {
	if words.IsFannedOut(f.Task) {
		return
	}
	res, err := w.services.runs.ListRunLogs(ctx, connect.NewRequest(&v1.ListRunLogsRequest{Id: run, Task: f.Name, Tail: report.MaxLines}))
	if err != nil {
		f.Missing = "its log cannot be read: " + messageOf(err)
		return
	}
	if len(res.Msg.GetMissing()) > 0 {
		f.Missing = "parts of its log are missing"
	}
	for _, line := range res.Msg.GetItems() {
		f.Lines = append(f.Lines, line.GetText())
	}
}
