package embedded

import (
	"testing"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
)

// TestTuning reads the settings as the server does, because the server silently replaces a value of the wrong type by
// the default.
func TestTuning(t *testing.T) {
	t.Parallel()
	dc := dynamicconfig.NewCollection(tuning(), log.NewNoopLogger())
	const namespace = defaultNamespace
	for name, test := range map[string]struct{ got, want any }{
		"transfer polls":      {dynamicconfig.TransferProcessorMaxPollRPS.Get(dc)(), plenty},
		"timer polls":         {dynamicconfig.TimerProcessorMaxPollRPS.Get(dc)(), plenty},
		"visibility polls":    {dynamicconfig.VisibilityProcessorMaxPollRPS.Get(dc)(), plenty},
		"outbound polls":      {dynamicconfig.OutboundProcessorMaxPollRPS.Get(dc)(), plenty},
		"timer shift":         {dynamicconfig.TimerProcessorMaxTimeShift.Get(dc)(), time.Millisecond},
		"worker commands":     {dynamicconfig.WorkerCommandsEnabled.Get(dc)(namespace), true},
		"pushed cancel":       {dynamicconfig.EnableCancelActivityWorkerCommand.Get(dc)(namespace), true},
		"polls on shutdown":   {dynamicconfig.EnableCancelWorkerPollsOnShutdown.Get(dc)(namespace), true},
		"eager activities":    {dynamicconfig.EnableActivityEagerExecution.Get(dc)(namespace), true},
		"eager workflows":     {dynamicconfig.EnableEagerWorkflowStart.Get(dc)(namespace), true},
		"priority levels":     {dynamicconfig.MatchingPriorityLevels.Get(dc)(namespace, testQueue, 1), priorityLevels},
		"read partitions":     {dynamicconfig.MatchingNumTaskqueueReadPartitions.Get(dc)(namespace, testQueue, 1), 1},
		"write partitions":    {dynamicconfig.MatchingNumTaskqueueWritePartitions.Get(dc)(namespace, testQueue, 1), 1},
		"long polls":          {dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Get(dc)(namespace), plenty},
		"namespace calls":     {dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Get(dc)(namespace), plenty},
		"visibility calls":    {dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Get(dc)(namespace), plenty},
		"frontend calls":      {dynamicconfig.FrontendRPS.Get(dc)(), plenty},
		"history calls":       {dynamicconfig.HistoryRPS.Get(dc)(), plenty},
		"matching calls":      {dynamicconfig.MatchingRPS.Get(dc)(), plenty},
		"frontend store":      {dynamicconfig.FrontendPersistenceMaxQPS.Get(dc)(), plenty},
		"history store":       {dynamicconfig.HistoryPersistenceMaxQPS.Get(dc)(), plenty},
		"matching store":      {dynamicconfig.MatchingPersistenceMaxQPS.Get(dc)(), plenty},
		"history cache":       {dynamicconfig.HistoryCacheHostLevelMaxSize.Get(dc)(), 2_000},
		"blob warning":        {dynamicconfig.BlobSizeLimitWarn.Get(dc)(namespace), 2 << 20},
		"memo warning":        {dynamicconfig.MemoSizeLimitWarn.Get(dc)(namespace), 2 << 20},
		"task queue scanner":  {dynamicconfig.TaskQueueScannerEnabled.Get(dc)(), false},
		"history scanner":     {dynamicconfig.HistoryScannerEnabled.Get(dc)(), false},
		"parent close worker": {dynamicconfig.EnableParentClosePolicyWorker.Get(dc)(), false},
		"version check":       {dynamicconfig.EnableServerVersionCheck.Get(dc)(), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: the server reads %v, want %v", name, test.got, test.want)
		}
	}
}
