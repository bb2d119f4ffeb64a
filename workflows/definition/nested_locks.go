package definition

import (
	"fmt"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// nestedLocks checks the locks of a definition and of its inline definitions together. It reports a semaphore that has several
// limits, and warns about locks that inline definitions need and never get, because the runs above hold them until the inner runs
// have ended.
type nestedLocks struct {
	*document
	limits map[string]semaphoreLimit // by the name of the semaphore
}

// semaphoreLimit is the first place of a semaphore.
type semaphoreLimit struct {
	limit int32
	at    *source.Path
}

// limit reports a semaphore whose limit differs from that at another place.
func (n nestedLocks) limit(s *v1.Semaphore, p *source.Path) {
	first, ok := n.limits[s.GetName()]
	if !ok {
		n.limits[s.GetName()] = semaphoreLimit{s.GetLimit(), p}
		return
	}
	if first.limit != s.GetLimit() {
		where := first.at.String()
		if line := n.locate(first.at).Line; line > 0 {
			where += fmt.Sprintf(" (line %d)", line)
		}
		n.Add(n.locate(p), p, fmt.Sprintf("semaphore %s has the limit %d here and %d at %s", s.GetName(), s.GetLimit(), first.limit, where),
			"write the same limit at both places, or give one of the semaphores another name")
	}
}

// nestedLock is a place of a lock that is held above an inline definition. A workflow with limited concurrency is a lock whose
// places its runs hold.
type nestedLock struct {
	name       string // of the lock or of the workflow
	isWorkflow bool
	limit      int32
	holder     string // for people
}

// check checks a definition, and those inside of it. above holds the locks that are held until a run of it has ended.
func (n nestedLocks) check(def *v1.Definition, base *source.Path, above []nestedLock) {
	if c := def.GetConcurrency(); c.GetMaxRuns() > 0 {
		slot := nestedLock{def.GetName(), true, c.GetMaxRuns(), "a run of " + def.GetName()}
		p := base.Field("concurrency").Field("maxRuns")
		if holders := neverGranted(slot, above); holders == nil {
			above = append(slices.Clip(above), slot)
		} else if c.GetStrategy() != v1.StrategySkip && c.GetStrategy() != v1.StrategyFail {
			n.Warn(n.locate(p), p,
				fmt.Sprintf("a run of %s never starts here: the runs around it keep all places that maxRuns allows until it has ended", def.GetName()),
				"raise maxRuns everywhere, or give this workflow another name")
		}
	}
	for _, name := range v1.TaskNames(def) {
		task, at, held := v1.TaskNamed(def, name), taskPath(base, def, name), above
		if LockName(task) != "" && !HasLockTemplate(task) {
			lock := nestedLock{LockName(task), false, max(task.GetSemaphore().GetLimit(), 1), at.String()}
			p := at.Field("semaphore").Field("name")
			if task.GetMutex() != "" {
				lock.limit, p = 1, at.Field("mutex")
			} else {
				n.limit(task.GetSemaphore(), at.Field("semaphore").Field("limit"))
			}
			if holders := neverGranted(lock, above); holders == nil {
				held = append(slices.Clip(above), lock)
			} else {
				n.Warn(n.locate(p), p,
					fmt.Sprintf("the lock %s is never granted: it is held by %s until this run has ended", lock.name, strings.Join(holders, " and ")),
					"use another lock here, or none for the tasks that start the run")
			}
		}
		spec := at.Field("spec")
		if inner := n.inner[spec.String()]; inner != nil {
			n.check(inner, spec.Field("definition").Inline(), held)
		}
	}
}

// neverGranted returns the holders above a definition that leave no place of a lock, or nil if there is a place.
func neverGranted(lock nestedLock, above []nestedLock) (holders []string) {
	least := lock.limit
	for _, h := range above {
		if h.name == lock.name && h.isWorkflow == lock.isWorkflow {
			least = min(least, h.limit)
			holders = append(holders, h.holder)
		}
	}
	if len(holders) < int(least) {
		return nil
	}
	return holders
}
