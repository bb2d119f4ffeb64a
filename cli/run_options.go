package cli

import (
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// localPlacementTimeout is how long a task of a run in this process waits while
// no node could ever take it: no other nodes are going to come.
const localPlacementTimeout = 5 * time.Second

// minHeartbeatTimeout is the least heartbeat time-out of attempts that leaves
// their nodes the time to beat, and to end them when they cannot.
const minHeartbeatTimeout = time.Second

// runOptions are the flags about one run that its definition does not hold.
type runOptions struct {
	placement placementFlag
	heartbeat time.Duration
	batch     string
}

// add adds the flags; defaults says what --placement-timeout is without a value.
func (o *runOptions) add(f *pflag.FlagSet, defaults string) {
	f.Var(&o.placement, "placement-timeout", "how long a task waits that no node could ever take; 0: without end ("+defaults+")")
	f.DurationVar(&o.heartbeat, "heartbeat-timeout", 0, "after how long without a sign of life a task is taken to be lost with its node (default 15s)")
	f.StringVar(&o.batch, "batch", "", "name that links runs that are submitted together, for runs list --batch")
}

// options are the settings of a run, with a placement time-out where the flag was
// not given, or nil if all are the defaults.
func (o *runOptions) options(unless time.Duration) (*v1.RunOptions, error) {
	if o.heartbeat != 0 && o.heartbeat < minHeartbeatTimeout {
		return nil, exit.Usagef("--heartbeat-timeout %s: it must be at least %s", o.heartbeat, minHeartbeatTimeout)
	}
	if o.placement.given {
		unless = o.placement.value
	}
	if unless == 0 && o.heartbeat == 0 {
		return nil, nil
	}
	options := &v1.RunOptions{}
	if unless != 0 {
		options.PlacementTimeout = durationpb.New(unless)
	}
	if o.heartbeat != 0 {
		options.HeartbeatTimeout = durationpb.New(o.heartbeat)
	}
	return options, nil
}

// placementFlag is the flag --placement-timeout, whose default depends on where
// the run goes.
type placementFlag struct {
	value time.Duration
	given bool
}

// Type returns the type of the value for the usage text.
func (p *placementFlag) Type() string { return "duration" }

// String returns the value as the user would type it.
func (p *placementFlag) String() string {
	if !p.given {
		return ""
	}
	return p.value.String()
}

// Set reads a duration such as 30s.
func (p *placementFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	if d < 0 {
		return exit.Usagef("it must not be negative")
	}
	p.value, p.given = d, true
	return nil
}
