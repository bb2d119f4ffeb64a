package executor

import "context"

// Lasting is an Executor whose attempts run until they are stopped, beyond the life of their worker and their lease.
//
// When the cause of ctx is ErrLetGo, Run and Reattach return soon, leave the attempt running, and set Stopped in their Result. A
// later worker finds the attempt among the Survivors. Any other cause ends the attempt, as with every Executor. An attempt that
// has not started yet does not start, whatever the cause. The lease bounds only the start.
type Lasting interface {
	Survivor

	// Stop ends the attempt that runs under an id, as if the ctx of its Run had ended, and returns at once. The Result of Run has
	// StoppedAsAsked set. Stop returns ErrNotRunning if no attempt runs under the id. Stopping twice is a no-op.
	Stop(ctx context.Context, id string) error
	// Restart ends all processes of an attempt, as Stop does, and starts its program again in the same place with the same files.
	// Run and the log continue. Restart returns when the program runs again, with ErrNotRunning if the attempt has ended, or with
	// a *Refusal. Once begun, a restart completes even if ctx ends; a concurrent Restart waits for it.
	Restart(ctx context.Context, id string) error
}
