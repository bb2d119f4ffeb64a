package cli

import (
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"switchyard/activities/election"
	"switchyard/activities/hostlist"
	"switchyard/activities/placement"
	"switchyard/cli/config"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/cli/stack"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workflows/definition"
)

// defaultSilence is the default bound on how long the node of an attempt may be silent.
const defaultSilence = 15 * time.Second

// fleetFlags holds the fleet-wide settings of a process that carries runs.
type fleetFlags struct {
	weights  []string
	order    output.Choice
	halfLife time.Duration
	timeout  time.Duration
	failures output.Choice
	parallel int32
	pickup   []string
	suspects int32
	silence  time.Duration
	lease    time.Duration
	leader   election.Timing
	cleanup  time.Duration
	allow    []string
	notify   string
	external string
}

// The default time-outs of --pickup-timeout. A machine may have to fetch a large image before its node has room for the next.
const (
	defaultPickup    = 15 * time.Second
	defaultVpsPickup = time.Minute
)

func (o *fleetFlags) add(f *pflag.FlagSet) {
	o.failures = output.Choice{Value: "continue", Allowed: []string{"continue", "halt"}}
	f.StringSliceVar(&o.weights, "score-weights", nil, "weights in a node's score as NAME=NUMBER, for cpu, memory, disk, network, gpu and task (default cpu=0.3, memory=0.3, disk=0.15, network=0.1, gpu=0.15, task=5, gaming=40)")
	o.order = output.Choice{Value: "fair", Allowed: []string{"fair", "fifo"}}
	f.Var(&o.order, "order", "order of tasks with the same priority: fair (owners of runs take turns) or fifo (the task that became ready first)")
	f.DurationVar(&o.halfLife, "fair-half-life", placement.DefaultFairHalfLife, "time after which what an owner has used of the fleet counts half in --order fair")
	f.DurationVar(&o.timeout, "default-timeout", 0, "time limit of an attempt if its definition sets none; 0 means no limit")
	f.Var(&o.failures, "default-failure-policy", "what a run does after a failure if its definition does not say: continue or halt")
	f.DurationVar(&o.silence, "default-heartbeat-timeout", defaultSilence, "how long a task's node may be silent before the task starts elsewhere, if neither definition nor run says; with a longer time, tasks survive longer outages of Temporal, but dead nodes are detected later")
	f.DurationVar(&o.lease, "max-lease", definition.MaxLease, "how long the node of an old task may be silent: the longer a task has run since its start or newest checkpoint, the longer an outage of Temporal it survives; 15s for none that grows. It has no effect on tasks whose heartbeat timeout is set")
	f.Int32Var(&o.parallel, "default-max-parallel", 0, "maximum number of tasks that a run has in progress at once if its definition sets no maxParallel; 0 means no limit")
	f.StringSliceVar(&o.pickup, "pickup-timeout", []string{"15s", "vps=1m"}, "how long a node may take to pick up a task before the task moves to another node, for all tasks or as TYPE=DURATION for those of a type")
	f.Int32Var(&o.suspects, "suspicion-limit", 1, "how many dispatches of a task in a row a node may fail to pick up or start before the task avoids the node")
	f.DurationVar(&o.leader.Lease, "leader-lease", election.DefaultLease, "how long the leading gateway may be silent before another one leads; while it cannot reach Temporal, it stops leading a fifth of that time earlier")
	f.DurationVar(&o.leader.Renewal, "leader-renewal", election.DefaultRenewal, "how often the leading gateway renews its lease; at most a third of --leader-lease")
	f.StringSliceVar(&o.allow, "notify-allow", nil, "hosts that notifications may be sent to although their addresses are not on the public internet: names or addresses such as hooks.internal or 10.0.0.7")
	f.StringVar(&o.external, "external-url", "", "URL at which people open the page, such as https://yard.example.com, for links in notifications (default for dev its own address)")
	f.StringVar(&o.notify, "notify-file", "", "file with whom to tell about all runs that no other run has started: a list, in YAML or JSON, of entries as in notify of a definition; give it to all gateways of a fleet")
	f.DurationVar(&o.cleanup, "cleanup-interval", workers.DefaultCleanupInterval, "how often the leading gateway removes what has expired from the store, by --retention")
}

// into checks the flags and applies them to a stack.
func (o *fleetFlags) into(cfg *stack.Config) error {
	switch {
	case o.halfLife < time.Second:
		return exit.Usagef("--fair-half-life %s: it must be at least 1s", o.halfLife)
	case o.timeout < 0:
		return exit.Usagef("--default-timeout %s: it must not be negative; 0 means no limit", o.timeout)
	case o.silence < definition.MinHeartbeatTimeout || o.silence > definition.MaxHeartbeatTimeout:
		return exit.Usagef("--default-heartbeat-timeout %s: it must be 5s to 1h", o.silence)
	case o.lease < definition.MinLease || o.lease > definition.MaxHeartbeatTimeout:
		return exit.Usagef("--max-lease %s: it must be %s to 1h", o.lease, definition.MinLease)
	case o.parallel < 0:
		return exit.Usagef("--default-max-parallel %d: it must not be negative; 0 means no limit", o.parallel)
	case o.leader.Lease < election.MinLease || o.leader.Lease > election.MaxLease:
		return exit.Usagef("--leader-lease %s: it must be %s to %s", o.leader.Lease, election.MinLease, election.MaxLease)
	case o.leader.Renewal < election.MinRenewal:
		return exit.Usagef("--leader-renewal %s: it must be at least %s", o.leader.Renewal, election.MinRenewal)
	case o.leader.Validate() != nil:
		return exit.Usagef("--leader-renewal %s: it must be at most a third of --leader-lease, which is %s, so that one that is lost does not end it", o.leader.Renewal, o.leader.Lease)
	case o.cleanup < workers.MinCleanupInterval:
		return exit.Usagef("--cleanup-interval %s: it must be at least %s", o.cleanup, workers.MinCleanupInterval)
	case o.suspects < 1:
		return exit.Usagef("--suspicion-limit %d: it must be at least 1", o.suspects)
	}
	pickup, pickups, err := pickupTimeouts(o.pickup)
	if err != nil {
		return err
	}
	weights, err := scoreWeights(o.weights)
	if err != nil {
		return err
	}
	for _, host := range o.allow {
		if err := hostlist.Check(host); err != nil || strings.Contains(host, "*") {
			return exit.Usagef("--notify-allow %s: name each host or address by itself, such as hooks.internal or 10.0.0.7, without scheme or port", host)
		}
	}
	if cfg.Notify, err = readNotify(o.notify); err != nil {
		return err
	}
	if cfg.ExternalURL, err = checkExternalURL(o.external); err != nil {
		return err
	}
	cfg.FIFO, cfg.FairHalfLife = o.order.Value == "fifo", o.halfLife
	cfg.Weights, cfg.Leader, cfg.CleanupInterval, cfg.NotifyAllow = weights, o.leader, o.cleanup, o.allow
	cfg.Defaults = definition.RunDefaults{Timeout: o.timeout, MaxParallel: o.parallel, PickupTimeout: pickup, PickupTimeouts: pickups}
	if o.suspects > 1 { // the default is not stored
		cfg.Defaults.SuspicionLimit = o.suspects
	}
	if o.silence != defaultSilence { // the default is not stored
		cfg.Defaults.HeartbeatTimeout = o.silence
	}
	if o.lease != definition.MaxLease { // the default is not stored
		cfg.Defaults.MaxLease = o.lease
	}
	if o.failures.Value != "continue" { // the default is not stored
		cfg.Defaults.FailurePolicy = o.failures.Value
	}
	return nil
}

// readNotify returns the entries in a file, or nil if file is "".
func readNotify(file string) ([]*v1.Notification, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Usagef("--notify-file: %w", err)
	}
	entries, err := definition.ParseNotify(file, text)
	if err != nil {
		return nil, exit.Usagef("--notify-file %w", err)
	}
	return entries, nil
}

// checkExternalURL returns the value of --external-url without the slash at its end.
func checkExternalURL(text string) (string, error) {
	base := strings.TrimSuffix(text, "/")
	u, err := url.Parse(base)
	if base != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || base != u.Scheme+"://"+u.Host) {
		return "", exit.Usagef("--external-url %s: write scheme, host and port if it has one, such as https://yard.example.com, without a path", text)
	}
	return base, nil
}

// pickupTimeouts returns the time-out of all tasks and those of single types.
func pickupTimeouts(texts []string) (all time.Duration, byType map[string]time.Duration, err error) {
	all, byType = defaultPickup, map[string]time.Duration{v1.TypeVPS: defaultVpsPickup}
	for _, text := range texts {
		taskType, value, isTyped := strings.Cut(text, "=")
		if !isTyped {
			value = text
		}
		timeout, err := time.ParseDuration(value)
		kind, isKnown := v1.FindTaskType(taskType)
		switch {
		case err != nil:
			return 0, nil, exit.Usagef("--pickup-timeout %s: write a duration such as 15s, or TYPE=DURATION such as vps=1m", text)
		case timeout < definition.MinPickupTimeout:
			return 0, nil, exit.Usagef("--pickup-timeout %s: it must be at least 1s", text)
		case !isTyped:
			all = timeout
		case !isKnown || !kind.OnNode:
			return 0, nil, exit.Usagef("--pickup-timeout %s: there is no task type %q that runs on a node; use one of %s", text, taskType, strings.Join(nodeTypes(), ", "))
		default:
			byType[taskType] = timeout
		}
	}
	return all, byType, nil
}

// nodeTypes returns the task types that run on nodes.
func nodeTypes() []string {
	return slices.DeleteFunc(v1.TaskTypes(), func(name string) bool { return !v1.NeedsNode(name) })
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
	fields := map[string]*float64{"cpu": &w.CPU, "memory": &w.Memory, "disk": &w.Disk, "network": &w.Network, "gpu": &w.GPU, "task": &w.Task, "gaming": &w.Gaming}
	for name, text := range pairs {
		field := fields[name]
		if field == nil {
			return nil, exit.Usagef("--score-weights %s: there is no weight %q; use cpu, memory, disk, network, gpu, task or gaming", name, name)
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, exit.Usagef("--score-weights %s=%s: write a number that is not negative, such as 0.3", name, text)
		}
		*field = value
	}
	if sum := []float64{w.CPU, w.Memory, w.Disk, w.Network, w.GPU, w.Task, w.Gaming}; slices.Max(sum) == 0 {
		return nil, exit.Usagef("--score-weights: at least one weight must be above 0")
	}
	return &w, nil
}
