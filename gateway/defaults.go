package gateway

import (
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
)

// RunDefaults are what definitions and runs are given that do not say otherwise. They are written into the definition
// with which a run starts, or which is stored, so that another setting later changes no run that has begun.
type RunDefaults struct {
	// Timeout is the longest time that one attempt of a task may run; 0: no limit. "none" in a definition is no limit, too.
	Timeout time.Duration
	// FailurePolicy is "continue" or "halt"; empty: "continue".
	FailurePolicy string
	// PickupTimeout is how long an attempt waits in the queue of its node before it is placed anew; 0: 15 s.
	PickupTimeout time.Duration
}

// minPickupTimeout is the least time that a live node is given to take up an attempt.
const minPickupTimeout = time.Second

func (d RunDefaults) validate() error {
	var errs []error
	if d.Timeout < 0 {
		errs = append(errs, errors.New("gateway: Defaults.Timeout is negative"))
	}
	if d.FailurePolicy != "" && d.FailurePolicy != "continue" && d.FailurePolicy != "halt" {
		errs = append(errs, errors.New("gateway: Defaults.FailurePolicy is neither continue nor halt"))
	}
	if d.PickupTimeout != 0 && d.PickupTimeout < minPickupTimeout {
		errs = append(errs, errors.New("gateway: Defaults.PickupTimeout is below 1 s"))
	}
	return errors.Join(errs...)
}

// complete writes the defaults into a checked definition.
func (d RunDefaults) complete(def *v1.Definition) {
	if def.FailurePolicy == "" {
		def.FailurePolicy = d.FailurePolicy
	}
	if d.Timeout == 0 {
		return
	}
	for _, task := range def.GetTasks() {
		if task.GetTimeout() == "" && isTimed(task) {
			task.Timeout = d.Timeout.String()
		}
	}
}

// isTimed reports whether the attempts of a task run on a node, where a time-out ends them.
func isTimed(task *v1.TaskDefinition) bool {
	return task.GetType() != "approval" && task.GetType() != "run"
}

// options returns the options of a run with the defaults in them.
func (d RunDefaults) options(o *v1.RunOptions) *v1.RunOptions {
	if d.PickupTimeout == 0 || o.GetPickupTimeout() != nil {
		return o
	}
	o = proto.CloneOf(o)
	if o == nil {
		o = &v1.RunOptions{}
	}
	o.PickupTimeout = durationpb.New(d.PickupTimeout)
	return o
}
