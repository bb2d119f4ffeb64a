package cli

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"switchyard/activities/placement"
	"switchyard/cli/config"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/stack"
	"switchyard/workflows/definition"
)

// defaultSilence is the default bound on how long the node of an attempt may be silent.
const defaultSilence = 15 * time.Second

// fleetFlags holds the fleet-wide settings of a process that carries runs.
type fleetFlags struct {
	weights  []string
	timeout  time.Duration
	failures output.Choice
	pickup   time.Duration
	silence  time.Duration
}

func (o *fleetFlags) add(f *pflag.FlagSet) {
	o.failures = output.Choice{Value: "continue", Allowed: []string{"continue", "halt"}}
	f.StringSliceVar(&o.weights, "score-weights", nil, "weights in a node's score as NAME=NUMBER, for cpu, memory, disk, network, gpu and task (default cpu=0.3, memory=0.3, disk=0.15, network=0.1, gpu=0.15, task=5)")
	f.DurationVar(&o.timeout, "default-timeout", 0, "time limit of an attempt if its definition sets none; 0 means no limit")
	f.Var(&o.failures, "default-failure-policy", "what a run does after a failure if its definition does not say: continue or halt")
	f.DurationVar(&o.silence, "default-heartbeat-timeout", defaultSilence, "how long a task's node may be silent before the task starts elsewhere, if neither definition nor run says; with a longer time, tasks survive longer outages of Temporal, but dead nodes are detected later")
	f.DurationVar(&o.pickup, "pickup-timeout", 15*time.Second, "how long a node may take to pick up a task before the task moves to another node")
}

// into checks the flags and applies them to a stack.
func (o *fleetFlags) into(cfg *stack.Config) error {
	switch {
	case o.timeout < 0:
		return exit.Usagef("--default-timeout %s: it must not be negative; 0 means no limit", o.timeout)
	case o.silence < definition.MinHeartbeatTimeout || o.silence > definition.MaxHeartbeatTimeout:
		return exit.Usagef("--default-heartbeat-timeout %s: it must be 5s to 1h", o.silence)
	case o.pickup < time.Second:
		return exit.Usagef("--pickup-timeout %s: it must be at least 1s", o.pickup)
	}
	weights, err := scoreWeights(o.weights)
	if err != nil {
		return err
	}
	cfg.Weights = weights
	cfg.Defaults = definition.RunDefaults{Timeout: o.timeout, PickupTimeout: o.pickup}
	if o.silence != defaultSilence { // the default is not stored
		cfg.Defaults.HeartbeatTimeout = o.silence
	}
	if o.failures.Value != "continue" { // the default is not stored
		cfg.Defaults.FailurePolicy = o.failures.Value
	}
	return nil
}

// scoreWeights returns the weights, or nil if all have their defaults.
func scoreWeights(texts []string) (*placement.Weights, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	pairs, err := config.ParsePairs("score-weights", texts)
	if err != nil {
		return nil, err
	}
	w := placement.DefaultWeights()
	fields := map[string]*float64{"cpu": &w.CPU, "memory": &w.Memory, "disk": &w.Disk, "network": &w.Network, "gpu": &w.GPU, "task": &w.Task}
	for name, text := range pairs {
		field := fields[name]
		if field == nil {
			return nil, exit.Usagef("--score-weights %s: there is no weight %q; use cpu, memory, disk, network, gpu or task", name, name)
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, exit.Usagef("--score-weights %s=%s: write a number that is not negative, such as 0.3", name, text)
		}
		*field = value
	}
	if sum := []float64{w.CPU, w.Memory, w.Disk, w.Network, w.GPU, w.Task}; slices.Max(sum) == 0 {
		return nil, exit.Usagef("--score-weights: at least one weight must be above 0")
	}
	return &w, nil
}
