package cli

import (
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
)

// localPlacementTimeout is how long a task of a run in this process waits while
// no node could ever take it: no other nodes are going to come.
const localPlacementTimeout = 5 * time.Second

// placementFlag is the flag --placement-timeout, whose default depends on where
// the run goes.
type placementFlag struct {
	value time.Duration
	given bool
}

func (p *placementFlag) add(f *pflag.FlagSet, defaults string) {
	f.Var(p, "placement-timeout", "how long a task waits that no node could ever take; 0: without end ("+defaults+")")
}

func (p *placementFlag) Type() string { return "duration" }

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
		return usageError("it must not be negative")
	}
	p.value, p.given = d, true
	return nil
}

// options are the settings of a run, with a default where the flag was not given.
func (p *placementFlag) options(unless time.Duration) *v1.RunOptions {
	d := unless
	if p.given {
		d = p.value
	}
	if d == 0 {
		return nil
	}
	return &v1.RunOptions{PlacementTimeout: durationpb.New(d)}
}
