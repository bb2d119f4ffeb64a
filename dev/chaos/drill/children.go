package drill

import "fmt"

// parent returns a workflow that runs another one, whose only task adds an entry to the context.
func (y *Cluster) parent(name string, j job) definition {
	j.last = `echo "from=$SWITCHYARD_RUN_ID" > "$SWITCHYARD_CONTEXT_UPDATE"`
	child := definition{Name: name + "-child", Tasks: map[string]taskSpec{"work": y.task(j)}}
	return definition{Name: name, Tasks: map[string]taskSpec{
		"before": y.task(job{}), "child": childRun(child, "before"), "after": y.task(job{after: []string{"child"}}),
	}}
}

// oneChild waits for the end of a parent, and checks that it had exactly one child, the given one.
func (y *Cluster) oneChild(name, id, child string) error {
	r, err := y.finished(id)
	if err != nil {
		return err
	}
	task := r.Tasks["child"]
	if task.ChildRun != child || task.Result.Output["from"] != child {
		return fmt.Errorf("the child of %s was %s, is %s, and has left %v", id, child, task.ChildRun, task.Result.Output)
	}
	var list struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	if err := y.ask(&list, "runs", "list", "--workflow", name+"-child"); err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].ID != child {
		return fmt.Errorf("%s has had the children %v, not %s alone", id, list.Items, child)
	}
	return y.untouched(child, []string{"work"})
}
