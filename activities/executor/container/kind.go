package container

import (
	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// Kind describes a task type whose attempts are containers.
type Kind struct {
	// Type is the task type.
	Type string
	// Plan returns the container of an attempt. Its error is a fault of the spec.
	Plan func(a executor.Attempt) (Plan, error)
	// Lasts reports whether containers run until they are stopped, as executor.Lasting says.
	Lasts bool
}

// Plan is the container that an attempt asks for.
type Plan struct {
	// Spec is what the container is made of.
	Spec *v1.ContainerSpec
	// Waits replaces the program by one that waits for SIGTERM.
	Waits bool
	// IsInit makes the program the first process of the container, in place of the engine's init. It is stopped by the signal
	// that the image names.
	IsInit bool
	// AtHome has commands of Enter start in the home of their user, unless they name a directory.
	AtHome bool
}

// containerKind is the kind of tasks of type "container".
var containerKind = Kind{Type: v1.TypeContainer, Plan: func(a executor.Attempt) (Plan, error) {
	spec := &v1.ContainerSpec{}
	err := DecodeSpec(a.Spec, spec)
	return Plan{Spec: spec}, err
}}

// prefix returns what the names of containers of a kind begin with.
func (k Kind) prefix() string {
	if k.Type == v1.TypeContainer {
		return namePrefix
	}
	return namePrefix + k.Type + "-"
}

// hasMade reports whether labels are those of a container of the kind. Containers of tasks of type "container" had no label for it
// at first.
func (k Kind) hasMade(labels map[string]string) bool {
	of, labelled := labels[labelType]
	return of == k.Type || !labelled && k.Type == v1.TypeContainer
}

// plan returns the container that an attempt asks for.
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
