package drill

import (
	"fmt"
	"time"
)

// killParent kills the control process of a run while its child run runs, and around the start of the child. There is
// exactly one child, which ends once.
func killParent(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	gate := y.gate("child")
	d := y.parent("parent", job{gate: gate})
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	var child string
	err = y.eventually("the child runs", func() (bool, error) {
		r, err := y.get(id)
		if err != nil {
			return false, err
		}
		child = r.Tasks["child"].ChildRun
		n, err := y.started(child, []string{"work"}, "")
		return n == 1, err
	})
	if err != nil {
		return err
	}
	if err := y.kill(gatewayName(0)); err != nil {
		return err
	}
	if err := y.open(gate); err != nil { // the child ends while no control process runs
		return err
	}
	if err := y.pause(y.Scale.Short); err != nil {
		return err
	}
	if err := y.restartGateway(0); err != nil {
		return err
	}
	if err := y.oneChild("parent", id, child); err != nil {
		return err
	}
	for i := range 4 {
		name := fmt.Sprintf("hasty-%d", i)
		id, err := y.submit(y.parent(name, job{}))
		if err != nil {
			return err
		}
		if err := y.pause(time.Duration(i) * y.Scale.Short / 10); err != nil {
			return err
		}
		if err := y.kill(gatewayName(0)); err != nil {
			return err
		}
		if err := y.restartGateway(0); err != nil {
			return err
		}
		if err := y.oneChild(name, id, ""); err != nil {
			return err
		}
	}
	return nil
}

// parent returns a workflow that runs another one, whose only task adds an entry to the context.
func (y *Cluster) parent(name string, j job) definition {
	j.last = `echo "from=$SWITCHYARD_RUN_ID" > "$SWITCHYARD_CONTEXT_UPDATE"`
	child := definition{Name: name + "-child", Tasks: map[string]taskSpec{"work": y.task(j)}}
	return definition{Name: name, Tasks: map[string]taskSpec{
		"before": y.task(job{}), "child": childRun(child, "before"), "after": y.task(job{after: []string{"child"}}),
	}}
}

// oneChild waits for the end of a parent, and checks that it had exactly one child: the given one, unless child is "".
func (y *Cluster) oneChild(name, id, child string) error {
	r, err := y.finished(id)
	if err != nil {
		return err
	}
	task := r.Tasks["child"]
	if child == "" {
		child = task.ChildRun
	}
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
