package definition

import (
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// inheritance records what tasks inherit, until it is known which of it has an effect.
type inheritance struct {
	given []fieldScope            // fields that the defaults have
	taken map[string][]fieldScope // fields that tasks do not have themselves, by task
	used  map[string]bool         // fields that at least one task has inherited with an effect
	lost  map[string]bool         // fields that at least one task would have inherited without an effect
}

func newInheritance(defaults *v1.TaskDefaults) *inheritance {
	h := &inheritance{taken: map[string][]fieldScope{}, used: map[string]bool{}, lost: map[string]bool{}}
	for _, s := range fieldScopes {
		if s.isSet(defaults) {
			h.given = append(h.given, s)
		}
	}
	return h
}

// missingScopes returns the scopes of the fields that a task does not have itself and may inherit.
func missingScopes(task *v1.TaskDefinition) (scopes []fieldScope) {
	for _, s := range fieldScopes {
		if !s.isSet(task) {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// dropUnused removes inherited fields that have no effect on a task. The task's spec must be known.
func (r *defaultsReader) dropUnused(name string, task *v1.TaskDefinition) {
	if r.inheritance == nil {
		return
	}
	for _, s := range r.inheritance.taken[name] {
		switch {
		case !s.isSet(task):
		case s.affects(task):
			r.inheritance.used[s.field] = true
		default:
			r.inheritance.lost[s.field] = true
			m, field := s.parent(task.ProtoReflect())
			m.Clear(field)
		}
	}
}

// warnOfUnused warns about defaults that have no effect on any task that inherits them.
func (r *defaultsReader) warnOfUnused() {
	if r.inheritance == nil {
		return
	}
	for _, s := range r.inheritance.given {
		p := extend(r.base.Field("defaults"), s.field)
		if purpose, _, _ := strings.Cut(s.reason, ";"); r.inheritance.lost[s.field] && !r.inheritance.used[s.field] {
			r.Warn(r.locateKey(p), p, "defaults."+s.field+" has no effect on any task of the workflow", s.field+" "+purpose)
		}
	}
	if p := r.base.Field("defaults").Field("spec").Field(shellField); r.defaultShell != nil && !r.shellUsed {
		r.Warn(r.locateKey(p), p, "defaults.spec.shell has no effect on any task of the workflow", "it is for commands that are strings and have no #! line")
	}
}
