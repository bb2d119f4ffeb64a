// Package dag is the pure core of a run: it knows which task may start, what an
// end does to the rest of the run and when the run itself is over. It takes
// events and gives decisions; whoever calls it carries them out. It imports the
// data model and the standard library only, and is deterministic (no clock, no
// randomness, no goroutines, no walk over a map), so that it can run inside
// workflow code and be replayed.
//
// A [Graph] is a compiled definition. A [State] is one run of it: [State.Start]
// gives the first decisions, [State.Apply] those that follow from events.
//
//	                  Evaluated false, upstream, halt
//	pending ----------------------------------------------> skipped
//	   | parents settled, condition true
//	   v           Placed              Running
//	queued ------------------> assigned -----> running
//	   |  ^                       |               |
//	   |  |   Ended moved         |               |
//	   |  +-----------------------+---------------+-------> completed stopped
//	   |  +<- BackoffOver - queued, backing off <-+         failed killed_oom lost
//	   |                                                    killed dead_letter rejected
//	   +------- GaveUp -----------------------------------> failed
//	any state before the end: Cancel ---------------------> cancelled
//	dead_letter: Retry -> queued, and skipped below it -> pending
//
// # Readings
//
// Where the rules leave something open, this is how they are read here.
//
//   - A task is settled when it and all its ancestors have ended. A task starts,
//     and its condition is asked for, when its parents are settled; that is when
//     they have ended, but for a task that halt skipped while its own parents
//     still ran: what comes after it waits for those too, because conditions see
//     every ancestor and a clean-up must not start under a task that still runs.
//   - A task that can no longer start is skipped when its parents are settled, not
//     before: so the outcome does not depend on which of them ended first.
//   - A condition together with onFailure: run: the condition decides. It is asked
//     whatever the ends of the parents were, and the task may start under halt.
//   - Parents that are all neutral, no condition, no onFailure: run: the task is
//     skipped for reason "upstream" and is neutral itself.
//   - A condition that cannot be evaluated is false: skipped, neutral, reason
//     "condition_error". When it could not be asked, because the system is at fault,
//     the task has failed, and is not tried again.
//   - continueOnError: an end of the task itself that would be a failure (being
//     cancelled alone included) counts as success for its children and not for the
//     run, nor does it halt it; its state word stays. It excuses no skip: a task
//     that was skipped because of a failure upstream is a failure for its children.
//   - A task that ends as cancelled without a cancelled run is a failure for its
//     children and neutral for the run, so it does not halt it either.
//   - halt begins with the first task that ends as a failure and is not excused.
//     Pending and queued tasks without onFailure: run are skipped at once. One that
//     has a failed attempt behind it and waits to repeat it (in back-off, or queued
//     again) ends in that failure itself and not as dead_letter; so does a running
//     one that fails later. One that is handed back as moved is treated like a
//     queued one. Tasks with onFailure: run start, move and are retried as ever.
//   - A failed attempt with retries left is queued, with its reason, until its
//     back-off is over. Only "failed", "killed_oom" and "lost" are retried.
//   - Attempt is the number of the newest attempt: it grows when a failure is going
//     to be repeated, so a dead letter with three retries has attempt 3.
//   - Cancel: what is not dispatched is cancelled at once; what is dispatched is to
//     be stopped and stays as it is until it has ended. If it ends as completed it
//     stays completed, everything else becomes cancelled. Nothing starts any more.
//     The run ends cancelled if Cancel came before the end of its last task.
//   - A placement that gave up is a failure that is never repeated.
//   - Retry puts a dead letter back, with its attempts at 0, and with it everything
//     below it that was skipped, whatever for: it is decided anew when the task has
//     ended, as is a dead letter that is put back under another one. What has run
//     stays as it is. If no failure is left that halts the run,
//     what halt skipped waits again too; if one is, only the task itself may start.
//     What halt ended in its failure stays so. A cancelled run has no Retry.
package dag
