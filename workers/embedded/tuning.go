package embedded

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

const (
	// historyShards is fixed for the life of a database file. Four shards measured no faster than one, in time and in
	// processor time per hop, because all of them share one database connection.
	historyShards = 1
	// priorityLevels gives each of the definition's priorities 0 to 10 its own level.
	priorityLevels = 11
	// plenty is a rate per second, or a count, that a single host never reaches. The limits protect a shared cluster.
	plenty = 1_000_000
)

// tuning returns the server's dynamic configuration: where a server for one host differs from one for a data centre.
func tuning() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// A shard polls each of its queues at most this often. The default of 20 per second adds 50 ms to each step of
		// a chain.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   plenty,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      plenty,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): plenty,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():   plenty,
		// Timers wait this long for slow clocks of other hosts. Here there is only one clock.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): time.Millisecond,

		// A cancellation is pushed to the worker instead of waiting for its next heartbeat.
		dynamicconfig.WorkerCommandsEnabled.Key():             true,
		dynamicconfig.EnableCancelActivityWorkerCommand.Key(): true,
		// A worker that shuts down cancels its polls, so that no task is dispatched to it afterwards.
		dynamicconfig.EnableCancelWorkerPollsOnShutdown.Key(): true,
		// The first task comes with the reply to the call that caused it, without a detour through matching.
		dynamicconfig.EnableActivityEagerExecution.Key(): true,
		dynamicconfig.EnableEagerWorkflowStart.Key():     true,

		// A long poll for the end of a workflow occasionally misses it and waits until it expires.
		dynamicconfig.HistoryLongPollExpirationInterval.Key(): 2 * time.Second,

		dynamicconfig.MatchingPriorityLevels.Key(): priorityLevels,
		// Partitions spread a queue over hosts. On one host they only add forwarding.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// Every node holds a handful of long polls. The default limit allows only 200 nodes.
		dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key(): plenty,
		dynamicconfig.FrontendRPS.Key():                                         plenty,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                  plenty,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():        plenty,
		dynamicconfig.HistoryRPS.Key():                                          plenty,
		dynamicconfig.MatchingRPS.Key():                                         plenty,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                           plenty,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                            plenty,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                           plenty,

		// Events during a workflow task are buffered until it ends. Beyond this number, the server fails and retries
		// the task. A run with 1,000 attempts in flight exceeds the default of 100 on a busy machine. The bytes stay
		// bounded.
		dynamicconfig.MaximumBufferedEventsBatch.Key(): 4_000,

		// The unit is entries, each up to a few hundred KB for a run of a thousand tasks. The default of 128,000 would
		// never evict here.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 2_000,

		// Runs deliberately carry payloads up to the limits, which Switchyard's own budgets enforce.
		dynamicconfig.BlobSizeLimitWarn.Key(): 2 * 1024 * 1024,
		dynamicconfig.MemoSizeLimitWarn.Key(): 2 * 1024 * 1024,

		// The scanners clean up what a large cluster accumulates over months, and the worker unburdens the queue of
		// parents with dozens of children. Their workers poll constantly, and the server never stops them.
		dynamicconfig.TaskQueueScannerEnabled.Key():       false,
		dynamicconfig.HistoryScannerEnabled.Key():         false,
		dynamicconfig.EnableParentClosePolicyWorker.Key(): false,

		// A run whose workflow task keeps failing is reported after two failures, each of which takes 10 s.
		dynamicconfig.NumConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute.Key(): 2,

		// The server must not call the internet.
		dynamicconfig.EnableServerVersionCheck.Key(): false,

		// No payloads are stored externally. To count external payloads, the server modifies events while other calls
		// read the same payloads: a data race.
		dynamicconfig.ExternalPayloadsEnabled.Key(): false,
	}
}
