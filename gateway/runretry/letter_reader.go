package runretry

import (
	"context"
	"errors"
	"fmt"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// letterReader reads the dead letters of a run.
type letterReader struct {
	reader *runview.Reader
	store  *store.Store
}

// instancesAtOnce is the number of instances that are read at once.
const instancesAtOnce = 1000

// stateReader reads the state of a run.
type stateReader interface {
	Read(ctx context.Context, id string) (*runview.View, error)
}

// read returns the unpurged dead letters of a run, ordered by task name and instance number.
func (l letterReader) read(ctx context.Context, runs stateReader, id string) ([]*v1.DeadLetter, error) {
	v, err := runs.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	var letters []*v1.DeadLetter
	dead, err := l.refs(ctx, v, v.Names)
	if err != nil {
		return nil, err
	}
	for _, about := range dead {
		t := about.Brief()
		letters = append(letters, &v1.DeadLetter{
			Run: id, Task: about.Name, Attempts: about.Attempts(), Error: t.GetError(), Reason: t.GetReason(),
			Type: t.GetType(), Workflow: v.Run.GetName(), Generation: v.Run.GetGeneration(),
			DeadLetteredAt: runview.DeadLetteredAt(t),
		})
	}
	return letters, nil
}

// refs returns the unpurged dead letters among some tasks and their instances.
func (l letterReader) refs(ctx context.Context, v *runview.View, tasks []string) ([]runview.TaskRef, error) {
	var all []runview.TaskRef
	add := func(about runview.TaskRef) error {
		if about.Brief().GetState() != v1.TaskDeadLetter {
			return nil
		}
		purged, err := l.isPurged(ctx, v, about)
		if err == nil && !purged {
			all = append(all, about)
		}
		return err
	}
	for _, name := range tasks {
		t := v.Tasks[name]
		if err := add(runview.TaskRef{Name: name, TaskName: name, Task: t}); err != nil {
			return nil, err
		}
		for left, from := t.Task.GetCounts()[v1.TaskDeadLetter], 0; left > 0; {
			some, err := l.reader.Instances(ctx, v, name, from, instancesAtOnce)
			if err != nil {
				return nil, err
			}
			if len(some) == 0 {
				break
			}
			for _, i := range some {
				from = int(i.Instance.GetIndex()) + 1
				if i.Brief.GetState() != v1.TaskDeadLetter {
					continue
				}
				left--
				if err := add(runview.TaskRef{Name: names.InstanceName(name, from-1), TaskName: name, Task: t, Instance: i}); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// isPurged reports whether a dead letter was purged. The mark names the claim, so a task that is retried and dead-lettered
// again is listed anew.
func (l letterReader) isPurged(ctx context.Context, v *runview.View, about runview.TaskRef) (bool, error) {
	var mark historyv1.ClaimRef
	err := l.store.GetMessage(ctx, storekey.Purged(v.Home(), v.Run.GetGeneration(), about.Name), &mark)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the dead letters of run %s: %w", v.Run.GetId(), err)
	}
	return mark.GetClaim() == about.Claim(), nil
}

// selectRefs returns the dead letters that a request selects: those of one task or instance, or those of the whole run if name
// is "". For a fanned-out task these are the dead letters of its instances.
func (l letterReader) selectRefs(ctx context.Context, v *runview.View, name string) ([]runview.TaskRef, error) {
	id := v.Run.GetId()
	if name == "" {
		all, err := l.refs(ctx, v, v.Names)
		if err == nil && len(all) == 0 {
			err = rpcerror.WrongState("run %s has no dead letters", id)
		}
		return all, err
	}
	about, err := l.reader.TaskRef(ctx, v, name)
	if err != nil {
		return nil, err
	}
	if about.Instance == nil && about.Task.Task.GetCounts()[v1.TaskDeadLetter] > 0 {
		all, err := l.refs(ctx, v, []string{name})
		if err == nil && len(all) == 0 {
			err = rpcerror.WrongState("the dead letters of task %s of run %s were purged", name, id)
		}
		return all, err
	}
	if state := about.Brief().GetState(); state != v1.TaskDeadLetter {
		return nil, rpcerror.WrongState("task %s of run %s is not a dead letter; its state is %s", name, id, state)
	}
	purged, err := l.isPurged(ctx, v, about)
	if err == nil && purged {
		err = rpcerror.WrongState("the dead letter of task %s of run %s was purged", name, id)
	}
	return []runview.TaskRef{about}, err
}

// namesOf returns the names of tasks and instances.
func namesOf(subjects []runview.TaskRef) []string {
	all := make([]string, len(subjects))
	for i, about := range subjects {
		all[i] = about.Name
	}
	return all
}
