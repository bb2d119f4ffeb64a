package placement

import (
	"math/rand/v2"
	"time"
)

// Options configures a Queue. Only Epoch has no default.
type Options struct {
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Epoch identifies the queue. The queue sends it to runs, so that they notice when another queue, which does not
	// know their requests, has taken over.
	Epoch string
	// Weights are the weights of the score. nil means DefaultWeights.
	Weights *Weights
	// PrefetchBelow is the mean attempt duration of a node below which the queue prefetches to that node. 0 means 1
	// s.
	PrefetchBelow time.Duration
	// ReasonInterval is the minimum time before a change of a reason's wording is reported. It doubles with each such
	// change, up to 5 minutes. 0 means 2 s.
	ReasonInterval time.Duration
	// Settle is how long a released claim may still show up in snapshots without counting as an attempt that another
	// process has placed. 0 means 10 s.
	Settle time.Duration
	// SampleAbove is the number of nodes with room above which the queue picks the best node of a sample instead of
	// the best of all nodes. 0 means 256.
	SampleAbove int
	// Sample is the minimum number of nodes in a sample. 0 means 8: the best of 8 is on average better than eight
	// ninths of all nodes.
	Sample int
	// FIFO makes the requests of one priority be placed in the order in which they became ready, whoever made them.
	FIFO bool
	// FairHalfLife is the time after which what an owner has used counts half. 0 means DefaultFairHalfLife.
	FairHalfLife time.Duration
	// NoReservations disables reservations for requests that fit no node yet.
	NoReservations bool
	// Rand draws the samples. nil means a randomly seeded generator.
	Rand *rand.Rand
	// Placed is called for each request that is assigned to a node, with the type of its task and the time that it
	// has waited since it became ready. nil disables the call.
	Placed func(taskType string, waited time.Duration)
	// Settled is called with the outcome of each dispatch whose outcome reflects on its node. nil discards the
	// outcomes.
	Settled func(node, outcome string)
}

// DefaultFairHalfLife is the default of Options.FairHalfLife. It is short enough that a night's batch does not count on the
// next morning.
const DefaultFairHalfLife = time.Hour

// longestReasonInterval bounds the doubling of ReasonInterval. Every report to a run adds events to its history, so a
// task that waits for days must not be reported for every MiB that becomes free or used.
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
	if o.FairHalfLife == 0 {
		o.FairHalfLife = DefaultFairHalfLife
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
