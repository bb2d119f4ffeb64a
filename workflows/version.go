package workflows

// Versions of the workflow Run. Each is asked for only where the behaviour
// differs, because the answer takes events of the history.
const (
	// versionEvents: events are stored in mid-run. A run of the first release kept none.
	versionEvents = "events"
	// versionSuspicion: an attempt that was lost before it gave a sign of its process
	// is moved. In the first release it was a failed attempt.
	versionSuspicion = "suspicion"
	// versionDeadLetters: dead letters are counted in a search attribute.
	versionDeadLetters = "dead-letters"
	// versionShared: requests carry the context and the input of the run, large ones by
	// a reference. Before, they carried neither.
	versionShared = "shared"
	// versionHandover: attempts that run when the history is full are handed over to the next
	// execution, and it is full sooner. Before, the run waited for their ends.
	versionHandover = "handover"
	// versionSooner: the history is full early enough for it to stay below 10,000 events with what is in flight.
	// Before, that began at 10,000.
	versionSooner = "sooner"
	// versionHalts: what a large fan-out does not start any more is skipped, and what a person has cancelled of it is a
	// failure in any part. Before, both were cancelled, and counted in their part.
	versionHalts = "halts"
	// versionChildren: child runs outlive the execution that has started them. Before, a run waited for their ends
	// before it went on in another one.
	versionChildren = "children"
)
