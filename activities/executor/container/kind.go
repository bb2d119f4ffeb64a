package container

import (
	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// Kind describes a task type whose attempts are containers.
type Kind struct {
	// Type is the task type.
	Type string
	// Plan returns the container for an attempt. Its error is a fault of the spec.
	Plan func(a executor.Attempt) (Plan, error)
	// Lasts reports that containers run until they are stopped, as described by Capabilities.Restart.
	Lasts bool
}

// Plan describes the container of an attempt.
type Plan struct {
	// Spec is the spec of the container.
	Spec *v1.ContainerSpec
	// Waits replaces the program with one that waits for SIGTERM.
	Waits bool
	// IsInit makes the program the first process of the container, instead of the engine's init. It is stopped with the image's
	// stop signal.
	IsInit bool
	// AtHome makes commands of Enter start in their user's home directory, unless they name a directory.
	AtHome bool
}

// containerKind is the kind of tasks of type "container".
var containerKind = Kind{Type: v1.TypeContainer, Plan: func(a executor.Attempt) (Plan, error) {
	spec := &v1.ContainerSpec{}
	err := DecodeSpec(a.Spec, spec)
	return Plan{Spec: spec}, err
}}

// prefix returns the prefix of the names of a kind's containers.
func (k Kind) prefix() string {
	if k.Type == v1.TypeContainer {
		return namePrefix
	}
	return namePrefix + k.Type + "-"
}

// hasMade reports whether labels belong to a container of the kind. Early versions did not label the type of containers of type
// "container".
func (k Kind) hasMade(labels map[string]string) bool {
	of, labelled := labels[labelType]
	return of == k.Type || !labelled && k.Type == v1.TypeContainer
}

// plan returns what to create for an attempt, or an error if its spec is not valid.
func (e *Executor) plan(a executor.Attempt) (Plan, error) {
	plan, err := e.kind.Plan(a)
	if err == nil {
		err = checkSpec(plan.Spec)
	}
	if err != nil {
		return Plan{}, e.kind.badSpec(err)
	}
	return plan, nil
}
