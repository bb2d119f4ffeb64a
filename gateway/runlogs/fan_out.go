package runlogs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"switchyard/activities/logs"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// fanOutInterval is the shortest time between two lists of the logs of a fanned-out task.
const fanOutInterval = 500 * time.Millisecond

// fanOut finds the logs of the instances and batches of a fanned-out task, or of one wanted instance. There may be very many
// of them, so they are listed from the store instead of being reported by the run.
type fanOut struct {
	task string
	info *v1.Task
	// seen holds the logs that have been found. listed reports whether the logs have been listed before.
	seen   map[logs.Attempt]bool
	listed bool
	// printers holds the attempts of ended instances that printed something, by number, if the run reports them.
	printers map[int]runview.Printer
	// open holds the instances that have not ended, if the run reports instances individually. newest holds the newest
	// attempt of each instance that has printed into several logs, by number.
	open   map[int]bool
	newest map[int]logs.Attempt
	// ended reports whether the wanted instance has ended, if the run reports it individually.
	ended bool
	// final reports whether there will be no more logs. changed reports whether there may be new logs since the last list,
	// which was made at the time at.
	final, changed bool
	at             time.Time
	// took is the duration of the last list.
	took time.Duration
	// missing holds the wanted instances that printed something although they have no log, once the fan-out is final. until
	// is when to stop waiting for these logs, or zero if nothing waits for them.
	missing []int
	until   time.Time
}

// updateFanOut applies the changes of a fanned-out task.
func (f *Follower) updateFanOut(changed runview.TaskDelta) {
	of := f.fanOuts[changed.Name]
	if of == nil {
		of = &fanOut{task: changed.Name, seen: map[logs.Attempt]bool{}, printers: map[int]runview.Printer{}, open: map[int]bool{}}
		f.fanOuts[changed.Name] = of
		delete(f.tails, changed.Name) // left over from before the task fanned out
	}
	for _, i := range changed.Instances {
		delete(of.printers, int(i.GetIndex()))
		of.open[int(i.GetIndex())] = !v1.HasTaskEnded(i)
		if p, ok := changed.Printers[i.GetIndex()]; ok {
			of.printers[int(i.GetIndex())] = p
		}
	}
	if _, index, ok := names.ParseInstanceName(f.req.GetTask()); ok {
		for _, i := range changed.Instances {
			if int(i.GetIndex()) == index {
				of.ended = v1.HasTaskEnded(i)
			}
		}
	}
	of.info, of.changed = changed.Task, true
	if of.final = of.ended || v1.HasTaskEnded(changed.Task) || f.isOfOlderGeneration(); !of.final {
		of.until = time.Time{}
	}
}

// listFanOuts finds new logs of fanned-out tasks.
func (f *Follower) listFanOuts(ctx context.Context) error {
	for _, of := range f.fanOuts {
		isDue := time.Since(of.at) > max(fanOutInterval, 10*of.took)
		switch {
		case !of.listed || of.changed && of.final:
		case of.final && !f.isAwaited(of), !isDue:
			continue
		}
		of.at, of.changed = time.Now(), false
		if err := f.list(ctx, of); err != nil {
			return err
		}
		of.took = time.Since(of.at)
	}
	return nil
}

// list adds a tail for each new log. Of the dispatches of an instance that precede the first list, only the newest is wanted,
// unless the client asked for a specific attempt.
func (f *Follower) list(ctx context.Context, of *fanOut) error {
	var found []logs.Attempt
	var err error
	if f.req.GetTask() == "" || f.req.GetTask() == of.task {
		found, err = logs.Instances(ctx, f.store, f.home, of.task)
		if err == nil && f.isOfOlderGeneration() { // the task may not have fanned out in that generation
			var own []logs.Attempt
			own, err = logs.Attempts(ctx, f.store, f.home, of.task)
			found = append(own, found...)
		}
	} else {
		found, err = logs.Attempts(ctx, f.store, f.home, f.req.GetTask())
	}
	if err != nil {
		return fmt.Errorf("list the logs of task %s: %w", of.task, err)
	}
	found = slices.DeleteFunc(found, func(a logs.Attempt) bool { return !f.isOfGeneration(of, a) })
	first := map[logs.Attempt]bool{}
	if !of.listed {
		if of.newest, err = f.newestPrinters(ctx, found); err != nil {
			return fmt.Errorf("read the logs of the batches of task %s: %w", of.task, err)
		}
		own := map[string][]logs.Attempt{}
		for _, a := range found {
			own[nameOf(a)] = append(own[nameOf(a)], a)
		}
		for name, attempts := range own {
			wanted := attempts
			if !attempts[0].Batch() || attempts[0].Of != "" {
				wanted = f.selectAttempts(name, attempts)
			}
			for _, a := range wanted {
				first[a] = true
			}
			if len(f.resume) > 0 || len(wanted) == len(attempts) || f.req.Attempt != nil {
				continue
			}
			if err := f.sendPosition(wanted[0]); err != nil {
				return err
			}
		}
	}
	for number, a := range found {
		switch {
		case of.seen[a]:
			continue
		case a.Batch() && a.Of == "": // isSuperseded filters its entries
		case f.req.Attempt != nil && a.Attempt != f.req.GetAttempt():
			continue
		case !of.listed && !first[a]:
			of.seen[a] = true
			continue
		}
		of.seen[a] = true
		f.tails[fmt.Sprint(a)] = &tail{task: a.Task, number: number, info: of.info, of: of, queue: []logs.Attempt{a}, next: f.resume[keyOf(a)]}
	}
	of.listed, of.missing = true, nil
	if of.final {
		of.missing = slices.DeleteFunc(slices.Sorted(maps.Keys(of.printers)), func(index int) bool {
			attempt, only := of.printers[index].Attempt, f.req.GetTask()
			return only != "" && only != of.task && only != names.InstanceName(of.task, index) ||
				f.req.Attempt != nil && f.req.GetAttempt() != attempt || of.hasLog(index, attempt)
		})
	}
	return nil
}

// isAwaited reports whether to wait for logs that a final fan-out lacks.
func (f *Follower) isAwaited(of *fanOut) bool {
	return f.req.GetFollow() && len(of.missing) > 0 && isBefore(&of.until)
}

// sendAllMissing reports the instances whose output is missing in the store.
func (f *Follower) sendAllMissing() error {
	for _, of := range f.fanOuts {
		for _, index := range of.missing {
			p := of.printers[index]
			if err := f.sendMissing(&v1.MissingLog{Task: names.InstanceName(of.task, index), Attempt: p.Attempt, Node: p.Node}); err != nil {
				return err
			}
		}
	}
	return nil
}

// unfinished returns the message that reports the log of an instance or a batch without its end, or nil if the log may have
// none: a newer one has replaced it, or its node was lost.
func (of *fanOut) unfinished(a logs.Attempt) *v1.MissingLog {
	if a.Of != "" {
		return nil // the batch may print more for other instances
	}
	first, last := extentOf(a)
	for b := range of.seen {
		if from, to := extentOf(b); a.Compare(b) < 0 && from <= last && first <= to {
			return nil
		}
	}
	for _, index := range slices.Backward(slices.Sorted(maps.Keys(of.printers))) {
		if p := of.printers[index]; of.covers(a, index, p.Attempt) {
			return &v1.MissingLog{Task: names.InstanceName(of.task, index), Attempt: p.Attempt, Node: p.Node, Partial: true}
		}
	}
	return nil
}

// hasLog reports whether the log of an instance's attempt was found, or the log of a batch that may include the instance.
func (of *fanOut) hasLog(index int, attempt int32) bool {
	for a := range of.seen {
		if a.Of != "" || of.covers(a, index, attempt) {
			return true
		}
	}
	return false
}

func (of *fanOut) covers(a logs.Attempt, index int, attempt int32) bool {
	if _, first, last, ok := storekey.ParseBatchName(a.Task); ok {
		return first <= index && index <= last
	}
	return a.Task == names.InstanceName(of.task, index) && a.Attempt == attempt
}

// nameOf returns the task or instance that a log belongs to.
func nameOf(a logs.Attempt) string {
	if a.Of != "" {
		return a.Of
	}
	return a.Task
}
