package definition

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
)

// MinPickupTimeout is the shortest time that a live node is given to pick up an attempt.
const MinPickupTimeout = time.Second

// MaxLease is how far the heartbeat time-out of an attempt may grow with its age, unless its run sets another time. MinLease is the
// least such time; with it the time-out does not grow.
const (
	MaxLease = 10 * time.Minute
	MinLease = 15 * time.Second
)

// RunDefaults are the settings of a fleet for fields that definitions and runs leave open. They are written into the definition
// when a run starts or a definition is stored, so that a later setting changes no run that has begun.
type RunDefaults struct {
	// Timeout is the longest time that one attempt of a task may run; 0 means no limit. A definition disables the limit for a
	// task with "0". Tasks that run until they are stopped have none.
	Timeout time.Duration
	// FailurePolicy is "continue" or "halt"; "" means "continue".
	FailurePolicy string
	// MaxParallel is the most tasks and instances of a run at once; 0 means no limit.
	MaxParallel int32
	// PickupTimeout is how long an attempt waits in the queue of its node before it is placed again; 0 means 15 s.
	PickupTimeout time.Duration
	// PickupTimeouts replaces PickupTimeout for tasks of single types.
	PickupTimeouts map[string]time.Duration
	// SuspicionLimit is how many dispatches in a row may be not picked up or not started before a task avoids the node; 0 means 1.
	SuspicionLimit int32
	// HeartbeatTimeout is how long the node of an attempt may be silent before the attempt counts as lost; 0 means 15 s.
	HeartbeatTimeout time.Duration
	// MaxLease is how far that time may grow with the age of an attempt; 0 means 10 min. It applies if neither the definition nor the
	// run sets a heartbeat time-out.
	MaxLease time.Duration
}

// Validate reports every invalid field of d.
func (d RunDefaults) Validate() error {
	var errs []error
	if d.Timeout < 0 {
		errs = append(errs, errors.New("Defaults.Timeout is negative"))
	}
	if d.FailurePolicy != "" && d.FailurePolicy != "continue" && d.FailurePolicy != "halt" {
		errs = append(errs, errors.New("Defaults.FailurePolicy is neither continue nor halt"))
	}
	if d.MaxParallel < 0 {
		errs = append(errs, errors.New("Defaults.MaxParallel is negative"))
	}
	if d.SuspicionLimit < 0 {
		errs = append(errs, errors.New("Defaults.SuspicionLimit is negative"))
	}
	if d.PickupTimeout != 0 && d.PickupTimeout < MinPickupTimeout {
		errs = append(errs, errors.New("Defaults.PickupTimeout is below 1 s"))
	}
	for taskType, timeout := range d.PickupTimeouts {
		if timeout < MinPickupTimeout || !v1.NeedsNode(taskType) {
			errs = append(errs, fmt.Errorf("Defaults.PickupTimeouts[%s] is below 1 s, or tasks of this type need no node", taskType))
		}
	}
	if h := d.HeartbeatTimeout; h != 0 && (h < MinHeartbeatTimeout || h > MaxHeartbeatTimeout) {
		errs = append(errs, errors.New("Defaults.HeartbeatTimeout is not 5 s to 1 h"))
	}
	if l := d.MaxLease; l != 0 && (l < MinLease || l > MaxHeartbeatTimeout) {
		errs = append(errs, errors.New("Defaults.MaxLease is not 15 s to 1 h"))
	}
	return errors.Join(errs...)
}

// FillDefinition writes the defaults into the open fields of a checked definition.
func (d RunDefaults) FillDefinition(def *v1.Definition) {
	if def.FailurePolicy == "" {
		def.FailurePolicy = d.FailurePolicy
	}
	if def.GetMaxParallel() == 0 {
		def.MaxParallel = d.MaxParallel
	}
	if d.Timeout == 0 {
		return
	}
	for _, task := range v1.AllTasks(def) {
		if task.GetTimeout() == "" && v1.NeedsNode(task.GetType()) && !v1.Lasts(task.GetType()) {
			task.Timeout = d.Timeout.String()
		}
	}
}

// FillOptions returns the options of a run with open fields filled from the defaults. It does not modify o, which may be nil.
func (d RunDefaults) FillOptions(o *v1.RunOptions) *v1.RunOptions {
	filled := proto.CloneOf(o)
	if filled == nil {
		filled = &v1.RunOptions{}
	}
	if d.PickupTimeout != 0 && o.GetPickupTimeout() == nil {
		filled.PickupTimeout = durationpb.New(d.PickupTimeout)
	}
	if len(d.PickupTimeouts) > 0 && o.GetPickupTimeout() == nil {
		filled.PickupTimeouts = map[string]*durationpb.Duration{}
		for taskType, timeout := range d.PickupTimeouts {
			filled.PickupTimeouts[taskType] = durationpb.New(timeout)
		}
	}
	if o.GetSuspicionLimit() == 0 {
		filled.SuspicionLimit = d.SuspicionLimit
	}
	if d.HeartbeatTimeout != 0 && o.GetHeartbeatTimeout() == nil {
		filled.HeartbeatTimeout = durationpb.New(d.HeartbeatTimeout)
	}
	if d.MaxLease != 0 && o.GetMaxLease() == nil && filled.GetHeartbeatTimeout() == nil {
		filled.MaxLease = durationpb.New(d.MaxLease)
	}
	if proto.Equal(filled, &v1.RunOptions{}) {
		return o
	}
	return filled
}
