package placement

import (
	"math/rand/v2"
	"time"
)

// Options are the settings of a Queue. Only Epoch has no default.
type Options struct {
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Epoch is the identity of the queue, sent to runs so that they notice
	// when another queue, which knows nothing of them, has taken over.
	Epoch string
	// Weights of the score; nil: DefaultWeights.
	Weights *Weights
	// PrefetchBelow is the mean length of a node's attempts below which its queue
	// is prefetched to; 0: 1 s.
	PrefetchBelow time.Duration
	// ReasonInterval is how long a reason stands before a change of its words
	// alone is reported; it doubles with each such change, up to 5 minutes; 0: 2 s.
	ReasonInterval time.Duration
	// Settle is how long a released claim may still show up in snapshots
	// without counting as an attempt that another process has placed; 0: 10 s.
	Settle time.Duration
	// SampleAbove is the number of nodes with room above which requests are given
	// to the best of a sample of them rather than of all; 0: 256.
	SampleAbove int
	// Sample is the least number of nodes in a sample; 0: 8, of which the best is on
	// average better than eight of nine of all.
	Sample int
	// Rand draws the samples; nil: differently each time.
	Rand *rand.Rand
	// Placed is called for each request that is given to a node: the type of its
	// task, and how long it has waited since it became ready; nil: none is.
	Placed func(taskType string, waited time.Duration)
	// Settled is called with the outcome of each dispatch that says something of its node; nil: outcomes are dropped.
	Settled func(node, outcome string)
}

// longestReasonInterval bounds the doubling of ReasonInterval. Whatever a run
// is reported adds events to its history, so one that waits for days must not be
// reported for every MiB that comes and goes.
const longestReasonInterval = 5 * time.Minute

// WithDefaults returns the options with every default filled in.
func (o Options) WithDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Weights == nil {
		w := DefaultWeights()
		o.Weights = &w
	}
	if o.PrefetchBelow == 0 {
		o.PrefetchBelow = time.Second
	}
	if o.ReasonInterval == 0 {
		o.ReasonInterval = 2 * time.Second
	}
	if o.Settle == 0 {
		o.Settle = 10 * time.Second
	}
	if o.SampleAbove == 0 {
		o.SampleAbove = 256
	}
	if o.Sample == 0 {
		o.Sample = 8
	}
	if o.Settled == nil {
		o.Settled = func(string, string) {}
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	return o
}
