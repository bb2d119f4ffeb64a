package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// taskArtifact is an artifact with the task that has left it.
type taskArtifact struct {
	*v1.Artifact
	task string
}

// artifactPage is a page of the artifacts of a run.
type artifactPage struct {
	items []taskArtifact
	next  string
}

// GetItems returns the artifacts.
func (p *artifactPage) GetItems() []taskArtifact { return p.items }

// GetNextPageToken returns the token of the next page, or "".
func (p *artifactPage) GetNextPageToken() string { return p.next }

// add adds the artifacts of a task or an instance.
func (p *artifactPage) add(task string, r *v1.TaskResult) {
	for _, a := range r.GetArtifacts() {
		p.items = append(p.items, taskArtifact{a, task})
	}
}

// addTask adds the artifacts of a task, or those of all of its instances.
func (p *artifactPage) addTask(ctx context.Context, a *client.Client, run, name string, task *v1.Task) error {
	p.add(name, task.GetResult())
	// A completed instance has every artifact of its task, so that the first one without any ends the search.
	req := &v1.ListInstancesRequest{Id: run, Task: name, State: v1.TaskCompleted, PageSize: 1}
	for more := task.GetCount() > 0; more; more = req.PageToken != "" {
		page, err := client.Call(ctx, a, a.Runs.ListInstances, req)
		if err != nil {
			return err
		}
		for _, one := range page.GetItems() {
			if len(one.GetResult().GetArtifacts()) == 0 {
				return nil
			}
			p.add(names.InstanceName(name, int(one.GetIndex())), one.GetResult())
		}
		req.PageToken, req.PageSize = page.GetNextPageToken(), instancesAtOnce
	}
	return nil
}

// instancesAtOnce is the number of instances that are asked for at once.
const instancesAtOnce = 1000

func newRunsArtifactsList(sys *system) *cobra.Command {
	cmd := listCommand[taskArtifact]{
		use: "list RUN [TASK]", short: "List the artifacts of a run or task",
		args: arguments(1, 2, "RUN"), what: "tasks' artifacts", limit: 1000, most: 10_000, keep: 3,
		fetch: func(ctx context.Context, a *client.Client, args []string, size int32, token string) (listPage[taskArtifact], error) {
			page := &artifactPage{}
			if len(args) > 1 {
				run, task, _, err := readTask(ctx, a, args[0], args[1])
				if err != nil {
					return nil, err
				}
				return page, page.addTask(ctx, a, run, args[1], task)
			}
			run, err := sys.resolveRun(ctx, a, args[0])
			if err != nil {
				return nil, err
			}
			res, err := client.Call(ctx, a, a.Runs.ListRunTasks, &v1.ListRunTasksRequest{Id: run, Brief: true, PageSize: size, PageToken: token})
			if err != nil {
				return nil, err
			}
			for _, task := range res.GetItems() {
				if err := page.addTask(ctx, a, run, task.GetName(), task); err != nil {
					return nil, err
				}
			}
			page.next = res.GetNextPageToken()
			return page, nil
		},
		item: func(a taskArtifact) (any, error) {
			var expires *time.Time
			if at := a.GetExpiresAt(); at != nil {
				expires = new(at.AsTime())
			}
			return struct {
				Task      string     `json:"task"`
				Name      string     `json:"name"`
				Size      int64      `json:"size,string"` // like each 64-bit integer
				Files     int32      `json:"files"`
				Digest    string     `json:"digest"`
				ExpiresAt *time.Time `json:"expiresAt,omitempty"`
			}{a.task, a.GetName(), a.GetSize(), a.GetFiles(), a.GetDigest(), expires}, nil
		},
		rows: func(all []taskArtifact) [][]string {
			rows := [][]string{{"TASK", "NAME", "SIZE", "FILES", "EXPIRES", "DIGEST"}}
			for _, a := range all {
				expires := sys.formatTime(a.GetExpiresAt())
				if at := a.GetExpiresAt(); at != nil && at.AsTime().Before(sys.now()) {
					expires = "expired " + expires
				}
				rows = append(rows, []string{a.task, words.OneLine(a.GetName()), words.Size(a.GetSize()), strconv.Itoa(int(a.GetFiles())), expires, a.GetDigest()})
			}
			return rows
		},
	}.command(sys)
	cmd.Long = `Lists the files that the completed tasks and instances of a run have left. TASK may be an
instance, such as "each[3]".`
	return cmd
}
