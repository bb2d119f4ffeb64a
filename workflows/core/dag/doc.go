// Package dag is the pure core of a run. It decides which task may start, how the end
// of a task affects the rest of the run, and when the run is over. It takes events
// and returns decisions, which the caller carries out. It imports proto,
// workflows/names and the standard library only, and is deterministic (no clock, no
// randomness, no goroutines, no walk over a map), so that it can run inside
// workflow code and be replayed.
//
// A [Graph] is a compiled definition. A [State] is one run of it: [State.Start]
// returns the first decisions, [State.Apply] those that follow from events. A State is
// a facade over parts that share its records, each with its own part of the state:
//
//	records    the record of each task and instance, and what has changed; groupTable: which tasks have fanned out
//	readiness  settled parents and triggers: what follows when all parents have settled
//	ends       the last state of a task; halt, cancellation and outcome of the run, in two phases: its tasks, and its `finally`
//	fanOuts    starts the instances of a task, stops them, and ends the task with the last
//	starts     carries out what readiness decides: begins a task, or skips it
//	retries    repeats failed attempts; reruns what has ended, in a run or in a new one
//
// Each part uses those above it. Only ends calls down, when an instance has ended.
//
//	                  when, Evaluated false, upstream, halt, max_failures
//	pending ----------------------------------------------> skipped
//	   |-- Evaluated with Err ----------------------------> failed
//	   | parents settled, when and condition true
//	   v           Placed              Running
//	queued ------------------> assigned -----> running
//	   |  ^                       |               |
//	   |  |   Ended moved         |               |
//	   |  +-----------------------+---------------+-------> completed stopped
//	   |  +<- BackoffOver - queued, backing off <-+         failed killed_oom lost
//	   |                                                    killed dead_letter rejected
//	   +------- Reused ------------------------------------> completed
//	   +------- GaveUp ------------------------------------> failed
//	any state before the end: Cancel, Abort, CancelTask ---> cancelled
//	                          Expire ----------------------> failed
//	                          Kill ------------------------> killed
//	dead_letter: Retry -> queued, and skipped below it -> pending
//
// A task that fans out requests no node itself. Its instances do, and each of them
// lives as above, from queued on:
//
//	           parents settled, when      Expanded             the last
//	           and condition true         with instances       instance ends
//	pending ------------------> (Expand) -----------> running -----------> completed
//	                               |  Expanded without                     failed skipped
//	                               |  any, or with Err                     cancelled
//	                               +---------------------> completed failed
//
// # Finally
//
// The tasks of `finally` are the last ones of the graph, and a phase of their own: they start when all others have ended, and halt,
// cancellation and retries stay within a phase.
//
//	        the last of the tasks ends,          the last of finally ends
//	        or BeginFinally in a cancelled run
//	tasks ------------------------------> finally ------------------------> end
//	  |  Cancel, Abort: end the tasks      |  Cancel with Now, ExpireFinally: end finally
//	  +-- before Start: end both phases, and the run
//
// A run ends as its tasks do. If they completed and `finally` did not, it fails.
//
// # Readings
//
// Where the rules leave something open, this package reads them as follows.
//
//   - A task is settled when it and all its ancestors have ended. A task starts, or
//     its condition is evaluated, when its parents are settled. That is usually
//     when they have ended. The exception is a parent that ended (by halt,
//     CancelTask or Expire) while its own parents still ran: its children wait for
//     those too, because conditions see every ancestor and a clean-up must not
//     start under a task that still runs.
//   - A task that can no longer start is skipped when its parents are settled, not
//     before, so that the outcome does not depend on which parent ended first.
//   - With a condition, but no when and no onFailure: run, a failed parent that the
//     condition does not mention makes the task skipped for reason "upstream", and
//     the condition is not evaluated. A condition mentions what it reads: parent.a,
//     parent['a'], or all ancestors if it uses parent as a whole or selects by a
//     value. A condition on an ancestor that is not a parent excuses no parent: a
//     test that was skipped because the build failed still guards its children.
//   - A condition together with onFailure: run: the condition decides. It is
//     evaluated however the parents ended, and the task may start under halt.
//   - `when` is checked before the condition, and both must hold. It replaces the
//     rule for tasks without a condition. all_success requires every parent to be a
//     success, all_failed a failure; one_success and one_failed require at least
//     one such parent; none_failed requires that no parent is a failure, and
//     accepts neutral ones; all_done and always require that the parents have
//     ended. If `when` does not hold, the task is skipped for reason "when" and is
//     neutral. always, all_done, one_failed and all_failed expect failures: such a
//     task starts under halt, like one with onFailure: run.
//   - If all parents are neutral and there is no when, no condition and no
//     onFailure: run, the task is skipped for reason "upstream" and is neutral
//     itself.
//   - A task fails without a retry if its condition cannot be evaluated (reason
//     "condition_error"), if the number of its instances cannot be determined
//     (reason "fan_out"), or if a system fault prevents either (reason "system").
//   - continueOnError: an end of the task itself that would be a failure (including
//     a cancellation of only this task) counts as a success for its children; it
//     neither fails nor halts the run. The state itself stays. It excuses no skip:
//     a task that was skipped because of a failure upstream is a failure for its
//     children.
//   - A task that ends as cancelled in a run that is not cancelled is a failure for
//     its children and neutral for the run, so it does not halt the run either.
//   - halt begins with the first task that ends as an unexcused failure. Pending
//     and queued tasks that may not start under halt are skipped at once. A task
//     that waits to retry a failed attempt (in back-off, or queued again) ends with
//     that failure and not as dead_letter. So does a running task that fails later,
//     unless its retries are used up. A task handed back as moved is treated like a
//     queued one. Tasks that may start under halt start, move and are retried as
//     usual.
//   - A failed attempt with retries left is queued, with its reason, until its
//     back-off is over. Only "failed", "killed_oom" and "lost" are retried.
//   - Attempt is the number of the newest attempt. It increases when a failure is
//     about to be retried, so a dead letter with three retries has attempt 3.
//   - Cancel: tasks that are not dispatched are cancelled at once. Dispatched tasks
//     are stopped and keep their state until they have ended. A task that then ends
//     as completed stays completed; every other one becomes cancelled. Nothing new
//     starts. The run ends cancelled if Cancel came before the end of its last
//     task. Abort is the same, except for how the run ends. The first Cancel or
//     Abort counts.
//   - CancelTask, Kill and Expire do the same to one task: a dispatched task is
//     stopped and, unless it completes, ends as cancelled, reason "task_cancelled",
//     killed, reason "killed", or failed, reason "deadline". None of them is
//     retried. The first of them counts, and takes precedence over a later Cancel.
//   - A request that placement gave up on is a failure that is never retried.
//   - Retry requeues a dead letter with its attempts at 0, and makes everything
//     below it that was skipped, for whatever reason, pending again: it is decided
//     anew when the task has ended. The same holds for a dead letter that is
//     requeued below another one. What has run stays as it is. If no failure that
//     halts the run is left, tasks skipped by halt become pending again too;
//     otherwise only the task itself may start. A task that halt ended with its
//     failure keeps that end. A cancelled run accepts no Retry.
//
// Rules for tasks that fan out:
//
//   - maxFailures applies to instances, and their combined outcome to their task.
//     An instance that is cancelled alone, or killed, counts as failed. The run,
//     halt and the children see only the task.
//   - One failure more than maxFailures stops the group. Instances that have not
//     started, or wait for approval, are skipped for reason "max_failures".
//     Instances that wait to retry an attempt end with its failure, as under halt.
//     Running instances may finish and are not retried; one that fails is a dead
//     letter if its retries are used up.
//   - When the last instance has ended, the task is completed if all instances are
//     a success; cancelled, killed, or failed by its deadline, if that came before
//     the last end; failed, reason "instances", if more than maxFailures have
//     failed; skipped, with the reason of the skipped instance with the lowest
//     number, if any was skipped (by halt); otherwise completed. The exit code is
//     that of the lowest-numbered instance whose code is neither 0 nor -1, else -1
//     if there is one, else 0.
//   - In a run that is halted, a group or an instance of it is treated like any
//     task: what has not started is skipped.
//   - Retry of an instance makes its task run again and the tasks skipped below it
//     pending again. If the failures are now within maxFailures, instances skipped
//     for "max_failures" become pending again too. The earlier outcome of the task
//     is dropped.
//   - A task that has instances keeps them, and therefore the list that they were
//     made from, when it is requeued or pending again: only those that did not
//     complete start. A task rerun by Rerun.From, or whose instances were
//     partitioned, fans out anew.
//   - A partitioned group is one whose instances other workflows run. It is like a
//     running task, but is never retried and may end as skipped.
//   - If a task with a condition is waiting for the number of its instances when
//     the state is restored, both its condition and the number are requested again.
package dag
