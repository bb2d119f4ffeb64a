package executor

import "context"

// Lasting is an Executor whose attempts run until they are stopped, beyond their worker and their lease.
//
// When the cause of ctx is ErrLetGo, Run and Reattach return soon and leave the attempt as it is, and their Result has Stopped set. A
// later worker finds it among the Survivors. Any other cause ends the attempt, as that of every Executor does. An attempt that has not
// started yet does not start, whatever the cause. The lease bounds only the start.
type Lasting interface {
	Survivor

	// Stop has the attempt that runs under an id end as when ctx of its Run ends, and returns at once: the Result of Run has
	// StoppedAsAsked set. ErrNotRunning means that no attempt runs under the id. To stop twice changes nothing.
	Stop(ctx context.Context, id string) error
	// Restart ends all processes of an attempt, as Stop does, and starts its program again in the same place and with the same files.
	// Run continues, and so does the log. Restart returns when the program runs again, with ErrNotRunning if the attempt has ended,
	// or with a *Refusal. A restart that has begun is completed even if ctx ends, and a second one meanwhile waits for the first.
	Restart(ctx context.Context, id string) error
}
