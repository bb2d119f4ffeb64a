// Package runretry serves the calls of RunService about dead letters and the next generations of runs.
//
//	ListDeadLetters, PurgeDeadLetter ──> deadLetters ────┬──> letterReader: which tasks are dead letters, and not purged
//	RetryDeadLetter ───────────────────> letterRetries ──┘
//	                                      │ open run: gateway/runupdate
//	                                      ▼ closed run
//	RetryRun ──────> runRetries ──────> Reopener ──> statusKeeper: the status of the generation before
//	                                             ──> partitionEnder: ends the FanOut children that it has left behind
//	                                             ──> Temporal: start the next generation
//
// Both retries wait for a store that is down (storeWait), and try again if the run changes meanwhile.
//
// Of this module it may import proto, activities/store, activities/store/storekey, gateway/auth, gateway/paging,
// gateway/rpcerror, gateway/runindex, gateway/runupdate, gateway/runview, gateway/submission, workflows/dataconverter,
// workflows/names and workflows/visibility.
package runretry
