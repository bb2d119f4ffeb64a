package client

import (
	"context"

	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

// RunPages calls take for each page of a run. A page holds some of the run's tasks, ordered by name. There is at least
// one page.
func (a *Client) RunPages(ctx context.Context, req *v1.GetRunRequest, take func(*v1.Run) error) error {
	for {
		page, err := Call(ctx, a, a.Runs.GetRun, req)
		if err != nil {
			return err
		}
		if err := take(page.GetRun()); err != nil {
			return err
		}
		// The resolved ID keeps a prefix, or "last", from naming another run on the next page.
		req.Id = page.GetRun().GetId()
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return nil
		}
	}
}

// Run returns a run with the tasks for which keep returns true.
func (a *Client) Run(ctx context.Context, req *v1.GetRunRequest, keep func(*v1.Task) bool) (*v1.Run, error) {
	var run *v1.Run
	tasks := map[string]*v1.Task{}
	err := a.RunPages(ctx, req, func(page *v1.Run) error {
		if run == nil {
			run = page
		}
		for name, task := range page.GetTasks() {
			if keep(task) {
				tasks[name] = task
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	run.Tasks = tasks
	return run, nil
}

// RunWithoutOutput returns a run with all its tasks, without their logs and outputs.
func (a *Client) RunWithoutOutput(ctx context.Context, id string) (*v1.Run, error) {
	return a.Run(ctx, &v1.GetRunRequest{Id: id, Brief: true}, func(*v1.Task) bool { return true })
}

// WriteRun writes a run page by page.
func (a *Client) WriteRun(ctx context.Context, id string, rw *output.RunWriter) error {
	if err := a.RunPages(ctx, &v1.GetRunRequest{Id: id}, rw.WritePage); err != nil {
		return err
	}
	return rw.End()
}

// HasEnded reports whether a run is known to have ended. It returns false if the call fails.
func (a *Client) HasEnded(ctx context.Context, id string) bool {
	page, err := Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: id, PageSize: 1})
	return err == nil && v1.IsRunTerminal(page.GetRun().GetState())
}
