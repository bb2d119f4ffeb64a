// Package dag is the pure core of a run: it knows which task may start, what an
// end does to the rest of the run and when the run itself is over. It takes
// events and gives decisions; whoever calls it carries them out. It imports
// proto, workflows/names and the standard library only, and is deterministic (no
// clock, no randomness, no goroutines, no walk over a map), so that it can run
// inside workflow code and be replayed.
//
// A [Graph] is a compiled definition. A [State] is one run of it: [State.Start]
// gives the first decisions, [State.Apply] those that follow from events.
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
// A task that fans out asks for no node itself. Its instances do, and each of them
// lives as above, from queued on:
//
//	           parents settled, when      Expanded             the last
//	           and condition true         with instances       instance ends
//	pending ------------------> (Expand) -----------> running -----------> completed
//	                               |  Expanded without                     failed skipped
//	                               |  any, or with Err                     cancelled
//	                               +---------------------> completed failed
//
// # Readings
//
// Where the rules leave something open, this is how they are read here.
//
//   - A task is settled when it and all its ancestors have ended. A task starts,
//     and its condition is asked for, when its parents are settled; that is when
//     they have ended, but for a task that ended (by halt, CancelTask or Expire)
//     while its own parents still ran: what comes after it waits for those too,
//     because conditions see every ancestor and a clean-up must not start under a
//     task that still runs.
//   - A task that can no longer start is skipped when its parents are settled, not
//     before: so the outcome does not depend on which of them ended first.
//   - With a condition, but no when and no onFailure: run, a task whose condition does
//     not mention a parent that is a failure is skipped for reason "upstream", and its
//     condition is not asked for. A condition mentions what it reads: parent.a,
//     parent['a'], or all ancestors where it goes through parent itself or picks by a
//     value. What it says of an ancestor that is no parent excuses no parent: a test
//     that was skipped because the build failed still guards what comes after it.
//   - A condition together with onFailure: run: the condition decides. It is asked
//     whatever the ends of the parents were, and the task may start under halt.
//   - `when` is looked at before the condition, and both must hold; it takes the
//     place of the rule for tasks without a condition. all_success wants every
//     parent to be a success, all_failed a failure; one_success and one_failed want
//     at least one such; none_failed wants no failure, and neutral will do; all_done
//     and always want the parents to have ended. Where it does not hold, the task is
//     skipped for reason "when" and is neutral. always, all_done, one_failed and
//     all_failed reckon with failures: such a task starts under halt, like one with
//     onFailure: run.
//   - Parents that are all neutral, no when, no condition, no onFailure: run: the
//     task is skipped for reason "upstream" and is neutral itself.
//   - A task has failed, and is not tried again, if its condition cannot be evaluated
//     (reason "condition_error"), if the number of its instances cannot be known
//     (reason "fan_out"), or if either cannot be asked because the system is at fault
//     (reason "system").
//   - continueOnError: an end of the task itself that would be a failure (being
//     cancelled alone included) counts as success for its children and not for the
//     run, nor does it halt it; its state word stays. It excuses no skip: a task
//     that was skipped because of a failure upstream is a failure for its children.
//   - A task that ends as cancelled without a cancelled run is a failure for its
//     children and neutral for the run, so it does not halt it either.
//   - halt begins with the first task that ends as a failure and is not excused.
//     Pending and queued tasks that may not start under it are skipped at once. One
//     that has a failed attempt behind it and waits to repeat it (in back-off, or
//     queued again) ends in that failure itself and not as dead_letter; so does a
//     running one that fails later, unless its retries are spent. One that is handed back as moved is treated like
//     a queued one. Tasks that may start under halt start, move and are retried as ever.
//   - A failed attempt with retries left is queued, with its reason, until its
//     back-off is over. Only "failed", "killed_oom" and "lost" are retried.
//   - Attempt is the number of the newest attempt: it grows when a failure is going
//     to be repeated, so a dead letter with three retries has attempt 3.
//   - Cancel: what is not dispatched is cancelled at once; what is dispatched is to
//     be stopped and stays as it is until it has ended. If it ends as completed it
//     stays completed, everything else becomes cancelled. Nothing starts any more.
//     The run ends cancelled if Cancel came before the end of its last task. Abort is
//     the same but for the end of the run. The first of them counts.
//   - CancelTask, Kill and Expire do the same to one task: what is dispatched is to be
//     stopped, and unless it completes it ends as cancelled, reason "task_cancelled",
//     killed, reason "killed", or failed, reason "deadline". None is retried. The first of them counts, also
//     before a Cancel that comes later.
//   - A placement that gave up is a failure that is never repeated.
//   - Retry puts a dead letter back, with its attempts at 0, and with it everything
//     below it that was skipped, whatever for: it is decided anew when the task has
//     ended, as is a dead letter that is requeued under another one. What has run
//     stays as it is. If no failure is left that halts the run,
//     what halt skipped waits again too; if one is, only the task itself may start.
//     What halt ended in its failure stays so. A cancelled run has no Retry.
//
// Of tasks that fan out:
//
//   - Instances go by maxFailures, and their task by what they come to. An instance
//     that is cancelled alone, or killed, is one that failed. The run, halt and the children know
//     the task only.
//   - With one failure more than maxFailures the group has been stopped: instances
//     that have not started, or wait for a person, are skipped for reason "max_failures",
//     those that wait to repeat an attempt end in its failure, as under halt; what runs
//     may finish and is not repeated: it is a dead letter if its retries are spent.
//   - When the last instance has ended: completed if all are a success; cancelled, killed, or
//     failed by its deadline, if that came before the end of the last one; failed, reason
//     "instances", if more have failed than may; skipped, with the reason of the first by
//     number, if any was skipped (by halt); else completed. The exit code is the first by
//     number that is neither 0 nor -1, else -1 if any is, else 0.
//   - A group in a run that is halted, or an instance of it, is treated as any task:
//     what has not started is skipped.
//   - Retry of an instance has its task run again, and what was skipped below it wait
//     again. Where fewer have failed now than may not, what was skipped for
//     "max_failures" waits again too. What the task has come to before is forgotten.
//   - A task that has its instances keeps them, and so the list that they were made
//     from, when it is requeued or waits again: only those that did not complete start.
//     Done again by Rerun.From, or after its instances were elsewhere, it fans out anew.
//   - A partitioned group is one whose instances someone else carries through. It is like a
//     task that runs, but is never retried and may end as skipped.
//   - A task with a condition that is asked for its instances when the state is
//     restored is asked for both again.
package dag
