package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"switchyard/activities/artifacts"
	"switchyard/activities/environments"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/workflows/names"
)

// DefaultRetention is how long the values of a run are kept after the run has ended.
const DefaultRetention = 30 * 24 * time.Hour

// The default and the least time between two passes of the collector.
const (
	DefaultCleanupInterval = time.Hour
	MinCleanupInterval     = time.Minute
)

const (
	// The first pass of a collector begins firstCollection after its start, and later ones at its interval, each with 10%
	// jitter.
	firstCollection = time.Minute
	// collectAtOnce is the most runs that one pass checks; the next pass continues from there.
	collectAtOnce = 10_000
	// collectPause is the wait between two runs. It keeps the load of a pass low.
	collectPause = 2 * time.Millisecond
	// collectErrors is the number of consecutive failed runs after which a pass ends.
	collectErrors = 10
	// abandonedAfter exceeds the time that the creation of an environment may take.
	abandonedAfter = 7 * 24 * time.Hour
	// collectTimeout bounds the work on one run.
	collectTimeout = time.Minute
	// recheckAfter is the least time between the two passes that must miss a run, however short the interval is.
	recheckAfter = 30 * time.Minute
	// unknownRunGrace is how long after its last value a run that Temporal does not know may be storing artifacts.
	unknownRunGrace = 24 * time.Hour
	// sourceRetention is how long the files of a run that is to be submitted are kept. The run has a copy of their manifest.
	sourceRetention = 24 * time.Hour
	// announceEvery is the time between two signs of life of a collector. It is less than firstCollection, so that another collector
	// sees this one before its first pass.
	announceEvery = 20 * time.Second
	// rivalPatience is how long a collector removes nothing after a sign of life of another one.
	rivalPatience = 10 * time.Minute
)

// collector removes from the store the values of runs that have been closed for longer than the retention. It also
// removes the values of runs that Temporal no longer knows, if they have stored nothing new for that long: two passes,
// at least recheckAfter apart, must miss the run, and its values must be newer than the cluster's claim of the store. It
// never removes values of an open run, nor anything while the store or the namespace is another than at the start.
// Cached results for later runs also expire after the retention.
//
// A fleet has one collector. A copy of a cluster's database has the namespace of the original, and knows nothing of what
// the original has done since. A collector that sees the signs of another one in its store therefore removes nothing.
type collector struct {
	client    *Connection
	store     *store.Store
	retention time.Duration
	interval  time.Duration
	log       *slog.Logger

	now   func() time.Time
	limit int
	// missing holds when a pass first missed a run that Temporal does not know.
	missing map[string]time.Time
	// last is the last run of the previous pass, or "" if that pass reached the end.
	last string

	// id distinguishes this collector from others, and signs counts its signs of life.
	id    string
	signs int
	// others holds the signs of other collectors at the last look. rival is the last one that has changed, and rivalAt when that
	// was seen.
	others  map[string]string
	rival   string
	rivalAt time.Time
}

// newCollector returns a collector. A retention of 0 means DefaultRetention, and an interval of 0 DefaultCleanupInterval.
func newCollector(client *Connection, s *store.Store, retention, interval time.Duration, log *slog.Logger) *collector {
	return &collector{
		client: client, store: s, retention: cmp.Or(retention, DefaultRetention), interval: cmp.Or(interval, DefaultCleanupInterval), log: log, now: time.Now, limit: collectAtOnce, missing: map[string]time.Time{},
		id: uuid.NewString(),
	}
}

// run removes expired values from the store, in one pass per interval, until ctx ends.
func (c *collector) run(ctx context.Context) {
	if err := c.warnOfServer(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn("cannot read the retention of the server", "error", err)
	}
	for wait := min(firstCollection, c.interval); ; wait = c.interval {
		// The jitter keeps several fleets on one server from collecting at the same time.
		if !c.announceFor(ctx, wait-wait/10+rand.N(wait/5)) {
			return
		}
		removed, err := c.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.log.Warn("cannot remove all values of old runs", "removed", removed, "error", err)
		case removed > 0:
			c.log.Info("the values of old runs are removed", "runs", removed, "retention", c.retention)
		}
	}
}

// announceFor gives signs of life for d. It returns false if ctx ends first.
func (c *collector) announceFor(ctx context.Context, d time.Duration) bool {
	for {
		if err := c.announce(ctx); err != nil && ctx.Err() == nil {
			c.log.Debug("cannot look for another collector of the store", "error", err)
		}
		step := min(d, announceEvery)
		if !pause(ctx, step) {
			return false
		}
		if d -= step; d <= 0 {
			return true
		}
	}
}

// announce gives a sign of life and looks for those of others.
func (c *collector) announce(ctx context.Context) error {
	c.signs++
	others, err := c.store.Announce(ctx, c.id, fmt.Sprintf("%s, sign %d", processIdentity(), c.signs))
	if err != nil {
		return err
	}
	for id, sign := range others {
		if before, known := c.others[id]; known && sign != before {
			c.rival, _, _ = strings.Cut(sign, ", sign ")
			c.rivalAt = c.now()
		}
	}
	c.others = others
	return nil
}

// checkRival returns an error while another collector gives signs of life.
func (c *collector) checkRival(ctx context.Context) error {
	if err := c.announce(ctx); err != nil {
		return err
	}
	if c.rivalAt.IsZero() || c.now().Sub(c.rivalAt) > rivalPatience {
		return nil
	}
	return fmt.Errorf("the store %s is also that of %s, perhaps of a copy of this cluster; while both run, neither removes anything: give one of them another --store, with a copy of the values",
		c.store.Location(), c.rival)
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// warnOfServer logs a warning if the server deletes runs before their values expire.
func (c *collector) warnOfServer(ctx context.Context) error {
	d, err := c.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: c.client.Namespace})
	if err != nil {
		return err
	}
	kept := d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if kept > 0 && kept < c.retention {
		c.log.Warn("the server deletes runs before their output is removed; they will be missing from lists, and their dead letters cannot be retried",
			"server", kept, "retention", c.retention,
			"remedy", fmt.Sprintf("temporal operator namespace update -n %s --retention %s", c.client.Namespace, c.retention))
	}
	return nil
}

// pass checks some of the runs in the store and removes expired values and expired cached results. An error with one
// run does not stop the work on the others.
func (c *collector) pass(ctx context.Context) (removed int, err error) {
	claim, err := c.claim(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.checkRival(ctx); err != nil {
		return 0, err
	}
	results, err := c.store.DeleteOlder(ctx, storekey.CachedPrefix, c.now().Add(-c.retention))
	if err != nil {
		return 0, err
	}
	if results > 0 {
		c.log.Info("old cached results are removed", "results", results, "retention", c.retention)
	}
	for prefix, kept := range map[string]time.Duration{storekey.RequestsPrefix: c.retention, storekey.AuditPrefix: c.retention, storekey.SourcesPrefix: sourceRetention} {
		if _, err := c.store.DeleteOlder(ctx, prefix, c.now().Add(-kept)); err != nil {
			return 0, err
		}
	}
	if archives, err := environments.New(c.store).Clean(ctx, c.now().Add(-abandonedAfter)); err != nil {
		c.log.Warn("cannot remove the archives of environments that were never created", "error", err)
	} else if archives > 0 {
		c.log.Info("archives of environments that were never created are removed", "archives", archives)
	}
	runs, err := c.next(ctx)
	if err != nil {
		return 0, err
	}
	failed := 0
	for _, run := range runs {
		if !pause(ctx, collectPause) {
			return removed, ctx.Err()
		}
		gone, err := c.collect(ctx, run, claim.Since)
		switch {
		case gone:
			removed++
			failed = 0
		case err == nil:
			failed = 0
		default:
			c.log.Warn("cannot remove the values of a run", "run", run, "error", err)
			if failed++; failed == collectErrors {
				return removed, fmt.Errorf("%d runs in a row failed; the last: %w", failed, err)
			}
		}
		c.last = run
	}
	return removed, c.sweep(ctx)
}

// sweep removes the contents of artifacts that no run refers to.
func (c *collector) sweep(ctx context.Context) error {
	chunks, err := c.store.SweepChunks(ctx, func(ctx context.Context, yield func(digest []byte)) error {
		return artifacts.Used(ctx, c.store, c.now(), c.mayContinue, yield)
	})
	if err != nil {
		return fmt.Errorf("remove unused contents of artifacts: %w", err)
	}
	if chunks > 0 {
		c.log.Info("unused contents of artifacts are removed", "chunks", chunks)
	}
	return nil
}

// mayContinue reports whether an attempt of a run may be storing artifacts that are wanted.
func (c *collector) mayContinue(ctx context.Context, run string) (bool, error) {
	ended, known, err := c.ended(ctx, run)
	return ended.IsZero() || !known && c.now().Sub(ended) < unknownRunGrace, err
}

// next returns the runs for a pass: at most the limit, starting where the previous pass ended.
func (c *collector) next(ctx context.Context) ([]string, error) {
	var runs []string
	for run, err := range c.store.Runs(ctx) {
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	slices.Sort(runs)
	from, found := slices.BinarySearch(runs, c.last)
	if found {
		from++
	}
	if from == len(runs) {
		from = 0
	}
	runs = runs[from:min(len(runs), from+c.limit)]
	return runs, nil
}

// claim returns the cluster's claim of the store. It returns an error if the store belongs to another cluster, or if the
// server now has another namespace of this name, which knows nothing of the runs.
func (c *collector) claim(ctx context.Context) (store.Claim, error) {
	if err := c.client.CheckFleet(ctx); err != nil {
		return store.Claim{}, err
	}
	return c.store.Claim(ctx)
}

// collect removes the values of a run if they have expired. since is when the cluster claimed the store.
func (c *collector) collect(ctx context.Context, run string, since time.Time) (removed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	ended, known, err := c.ended(ctx, run)
	if known {
		delete(c.missing, run)
	}
	if err != nil || ended.IsZero() || c.now().Sub(ended) <= c.retention {
		return false, err
	}
	if !known && (ended.Before(since) || !c.missedTwice(run)) {
		return false, nil
	}
	// A database that was restored may know an earlier end of a run that has gone on since.
	if newest, err := c.store.Newest(ctx, run); err != nil || c.now().Sub(newest) <= c.retention {
		return false, err
	}
	if err := c.store.DeleteRun(ctx, run); err != nil {
		return false, err
	}
	delete(c.missing, run)
	return true, nil
}

// missedTwice notes that Temporal does not know a run. It reports whether that was noted at least recheckAfter ago.
func (c *collector) missedTwice(run string) bool {
	first, ok := c.missing[run]
	if !ok {
		c.missing[run] = c.now()
		return false
	}
	return c.now().Sub(first) >= recheckAfter
}

// ended returns when a run was closed. For a run that Temporal does not know, known is false, and ended returns the time
// of the newest stored value. It returns the zero time for an open run and for a run without values.
func (c *collector) ended(ctx context.Context, run string) (at time.Time, known bool, err error) {
	d, err := c.client.DescribeWorkflowExecution(ctx, run, "")
	if unknown(err) {
		at, err = c.store.Newest(ctx, run)
		return at, false, err
	}
	if err != nil {
		return time.Time{}, true, err
	}
	info := d.GetWorkflowExecutionInfo()
	switch {
	case info.GetType().GetName() != names.RunWorkflow:
		at, err = c.store.Newest(ctx, run)
		return at, false, err
	case info.GetCloseTime() == nil:
		return time.Time{}, true, nil
	}
	return info.GetCloseTime().AsTime(), true, nil
}

// unknown reports whether an error means that Temporal has no workflow of that ID, or that the ID is invalid.
func unknown(err error) bool {
	_, missing := errors.AsType[*serviceerror.NotFound](err)
	_, bad := errors.AsType[*serviceerror.InvalidArgument](err)
	return missing || bad
}
