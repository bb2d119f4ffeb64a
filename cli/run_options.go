package cli

import (
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// localPlacementTimeout is how long a task of a run in this process waits while no node fits it. It is short because no
// other nodes can join.
const localPlacementTimeout = 5 * time.Second

// minHeartbeatTimeout is the shortest heartbeat time-out that leaves a node enough time to heartbeat, and to end its
// attempts if it cannot.
const minHeartbeatTimeout = time.Second

// runOptions holds the flags of one run that are not part of its definition.
type runOptions struct {
	placement placementFlag
	heartbeat time.Duration
	batch     string
}

// add registers the flags; defaults describes the default of --placement-timeout.
func (o *runOptions) add(f *pflag.FlagSet, defaults string) {
	f.Var(&o.placement, "placement-timeout", "how long a task may wait if no node could ever take it; 0 means forever ("+defaults+")")
	f.DurationVar(&o.heartbeat, "heartbeat-timeout", 0, "how long a task's node may be silent before the task counts as lost (default 15s)")
	f.StringVar(&o.batch, "batch", "", "name that groups runs submitted together, for runs list --batch")
}

// options returns the settings of a run, or nil if all are the defaults. It uses unless as the placement time-out if
// the flag was not given.
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

// placementFlag is the value of --placement-timeout, whose default depends on where the run executes.
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

// Set parses a duration such as 30s.
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
