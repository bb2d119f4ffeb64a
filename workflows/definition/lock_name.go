package definition

import (
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

var (
	lockName = lazyPattern(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	// inLockName matches a part of a lock name.
	inLockName = lazyPattern(`^[a-z0-9.-]*$`)
)

const lockNameForm = "at most 63 of a-z, 0-9, '.' and '-', the first and last a letter or digit"

// LockName returns the name of the lock that a task holds while it runs, or "" if it holds none.
func LockName(task *v1.TaskDefinition) string {
	if name := task.GetMutex(); name != "" {
		return name
	}
	return task.GetSemaphore().GetName()
}

// HasLockTemplate reports whether the name of a task's lock is not known yet.
func HasLockTemplate(task *v1.TaskDefinition) bool { return condition.HasTemplate(LockName(task)) }

// CheckLockName returns why a name that expressions have produced is not a valid lock name, or nil if it is.
func CheckLockName(template, name string) error {
	if lockName().MatchString(name) {
		return nil
	}
	if name == "" {
		return errors.New("the name of the lock, " + template + ", is empty")
	}
	return fmt.Errorf("the name of the lock, %s, is %s, which is not a valid name: %s", template, source.Quote(name), lockNameForm)
}

// lockName checks the templates in the name of a lock, and the text around them.
func (s *sight) lockName(text string, p *source.Path) {
	if !condition.HasTemplate(text) {
		return
	}
	s.template(text, p)
	t, err := condition.ParseTemplate(text)
	if err != nil {
		return // it has been reported
	}
	for _, literal := range t.Literals() {
		if !inLockName().MatchString(literal) {
			s.Add(s.locate(p), p, p.Local()+" has "+source.Quote(literal)+", which is not allowed in the name of a lock: "+lockNameForm, "")
		}
	}
}
