package embedded

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

const (
	// historyShards is fixed for the life of a database file. Four measured no faster than one, in time and in CPU a hop:
	// all of them share one database connection.
	historyShards = 1
	// priorityLevels gives each of the definition's priorities 0 to 10 a level of its own.
	priorityLevels = 11
	// plenty is a rate per second, or a count, that one host never reaches: the limits protect a shared cluster.
	plenty = 1_000_000
)

// tuning is the server's dynamic configuration: what a server for one host does otherwise than one for a data centre.
func tuning() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// A shard polls each of its queues at most this often; the stock 20 a second adds 50 ms to each step of a chain.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   plenty,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      plenty,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): plenty,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():   plenty,
		// Timers wait this long for clocks of other hosts that may be behind; there is one clock here.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): time.Millisecond,

		// A cancellation is pushed to the worker instead of waiting for its next heartbeat.
		dynamicconfig.WorkerCommandsEnabled.Key():             true,
		dynamicconfig.EnableCancelActivityWorkerCommand.Key(): true,
		// A worker that shuts down takes its polls with it, so no task is handed to one that has gone.
		dynamicconfig.EnableCancelWorkerPollsOnShutdown.Key(): true,
		// The first task comes with the answer to the call that caused it, without a trip through matching.
		dynamicconfig.EnableActivityEagerExecution.Key(): true,
		dynamicconfig.EnableEagerWorkflowStart.Key():     true,

		// A long poll for the end of a workflow now and then misses it and waits until it expires.
		dynamicconfig.HistoryLongPollExpirationInterval.Key(): 2 * time.Second,

		dynamicconfig.MatchingPriorityLevels.Key(): priorityLevels,
		// Partitions spread a queue over hosts; on one host they only cost forwarding.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// Every node holds a handful of long polls; the stock count ends at 200 nodes.
		dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key(): plenty,
		dynamicconfig.FrontendRPS.Key():                                         plenty,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                  plenty,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():        plenty,
		dynamicconfig.HistoryRPS.Key():                                          plenty,
		dynamicconfig.MatchingRPS.Key():                                         plenty,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                           plenty,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                            plenty,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                           plenty,

		// What happens while a workflow task is under way waits for its end; with more than this, the task is failed and done
		// again. A run with 1,000 attempts in flight passes the stock 100 whenever the machine is busy. Bytes stay bounded.
		dynamicconfig.MaximumBufferedEventsBatch.Key(): 4_000,

		// Entries, each up to a few hundred KB for a run of a thousand tasks. The stock 128,000 never evicts here.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 2_000,

		// Runs carry payloads up to the limits on purpose, guarded by Switchyard's own budgets.
		dynamicconfig.BlobSizeLimitWarn.Key(): 2 * 1024 * 1024,
		dynamicconfig.MemoSizeLimitWarn.Key(): 2 * 1024 * 1024,

		// The scanners tidy up what a large cluster leaves over months, and the worker takes parents with dozens of children
		// off the queue's own hands. Their workers poll all the time, and the server never stops them.
		dynamicconfig.TaskQueueScannerEnabled.Key():       false,
		dynamicconfig.HistoryScannerEnabled.Key():         false,
		dynamicconfig.EnableParentClosePolicyWorker.Key(): false,

		// A run whose workflow task fails again and again is shown as such after two failures; each one takes 10 s.
		dynamicconfig.NumConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute.Key(): 2,

		// Nothing calls the internet.
		dynamicconfig.EnableServerVersionCheck.Key(): false,

		// Nothing is kept outside of payloads. To count that, the server writes to
		// events while it answers others with the same payloads: a data race.
		dynamicconfig.ExternalPayloadsEnabled.Key(): false,
	}
}
