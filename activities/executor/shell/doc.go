// Package shell runs tasks of type "shell": a text for sh or another interpreter, or a list of words that runs without a shell.
// It may import proto, activities/executor, activities/executor/inside, workflows/interpreter, github.com/creack/pty, golang.org/x/sys and the standard library; it does not depend on Temporal.
//
// # What a program gets
//
// A program's environment consists of the node's variables named by inheritedVariables and Options.PassEnv, since the others may
// hold credentials of the worker, then Attempt.Env, then PWD and SWITCHYARD_CLAIM, the attempt's id. Standard input is
// Attempt.Stdin or empty. The program leads a session of its own, so it is not reached by Ctrl-C in the worker's terminal, and it
// cannot stop to prompt at that terminal.
//
// CUDA_VISIBLE_DEVICES holds the attempt's GPUs, whatever the task sets. It is empty if the node has GPUs but the attempt got
// none. With a part of a GPU, the variables of the Multi-Process Service limit the program to the part if that service runs. A program that is bound to a NUMA node is started through numactl.
//
// # How it ends
//
//	          exits                        no process left
//	running ─────────▶ lingering, 200 ms ──────────────────┐
//	   │                    │ time over                    ▼
//	   │ ctx done           └──────────▶ SIGKILL to all ─▶ ended
//	   │                                     ▲             ▲
//	   └──▶ stop signal to all ─▶ stopping ──┘             │
//	                           │   grace over              │
//	                           └───────────────────────────┘
//	                               no process left
//
// When a program exits, the processes that it left in the background are killed. The short linger lets helpers at the end of a
// pipe, such as the tee of a process substitution, write out what they hold. They get no stop signal: nothing asked the task to stop,
// and a program can wait for its children if it needs to.
//
// # Who belongs to an attempt
//
// A process group does not hold a program that forks twice or calls setsid. The Executor uses the first of these mechanisms that
// works on the machine:
//
//   - cgroup: a cgroup2 directory for each attempt, which the kernel kills in one step. Later
//     attempts reuse the directory if it is unchanged. Processes cannot leave it, except for
//     a privileged program that moves itself to another cgroup. The Executor searches /proc
//     for such strays by their marker shortly after the attempt has ended, kills and logs them.
//   - mark: the worker becomes the subreaper of all its descendants, and finds an
//     attempt's processes in /proc by SWITCHYARD_CLAIM in their environment, by their
//     session, and by descent from such a process. It misses a process that clears its
//     environment, starts a session and is orphaned, all three.
//   - group: only the process group, on systems other than Linux.
//
// # Limits
//
// A memory limit covers all processes of an attempt together, including swap. The kernel's own count of OOM kills distinguishes
// these from kills of another origin. With cgroup2 the attempt's directory enforces the limit, provided that its controllers are
// available: the worker must be in the root cgroup, or alone in its directory, which it then leaves for one below. With cgroup v1
// each attempt gets an additional directory and a thread in it that forks. If neither works there is no limit, and the attempt's
// log says so.
//
// # Sandboxes
//
// For a task with `sandbox: true` the worker starts its own program again, which builds the sandbox around itself and then
// executes the task's program:
//
//	user            one of a range that is the attempt's alone, with a group of its own
//	privileges      no capabilities, and none to gain through setuid programs
//	files           read-only, except for the workspace, the shared directory, /tmp and
//	                /dev/shm; /tmp is the attempt's own, and the node's is hidden except
//	                for the working directory; other workspaces are hidden
//	processes       other processes are hidden in /proc and cannot be signalled
//	environment     PATH, the locale and TZ of the node, then as above; HOME is /tmp
//	network         a loopback interface of its own and nothing else; with
//	                `network: node` the node's
//	limits          memory, processor and processes, from Attempt.Limits
//
// If a part cannot be set up, that is an error of the node; CanSandbox reports it beforehand.
//
// # Who enters
//
// A program that a caller of Enter runs in an attempt belongs to the attempt: it shares the attempt's process tree, limits,
// environment, user and sandbox, and leads a session of its own. When its caller has left or the attempt's own program has
// exited, it gets SIGHUP and soon afterwards SIGKILL. Processes that it leaves in the background remain until the attempt ends.
//
// # Batches
//
// A batch of attempts shares one process tree with its limits, one user if in a sandbox, one entry in the watchdog, and its
// pipes. Once nothing of a program is left, all its output is in the pipes, so the next program may use them. An attempt that
// leaves processes behind, which must be killed, costs the batch its pipes. A kill with SIGKILL costs the batch its cgroup,
// because Linux continues to kill what is forked into a killed cgroup. SWITCHYARD_CLAIM is the id of the batch.
//
// # When the worker dies, or is held up
//
// The parent-death signal ends the program itself, unless attempts can be left. The signal is bound to the thread that forked, so one
// thread that lives as long as the Executor forks for all attempts. Children do not inherit the setting, so a watchdog process
// handles the rest, see ServeIfAsked. The watchdog also holds the leases of the attempts, and the worker reports each renewal to it. A worker that is
// stopped (SIGSTOP, a debugger, a frozen machine) renews none, and the watchdog ends its attempts before another node may be
// given their tasks.
//
// # When the worker leaves an attempt
//
// The program runs on, with the same pipes. The watchdog of the worker enforces the lease, and keeps what the next worker needs:
//
//	worker ── keep ──▶ watchdog ── socket in LeftDir ──▶ next worker, with a watchdog of its own
//	                      │
//	                      └── end of the lease ──▶ stop signal ──▶ SIGKILL ──▶ forgotten
//
// A program that prints more than its pipes hold waits for the next worker. That worker is not the program's parent, and reads the
// exit status from a handle of the process (pidfd), which the watchdog got before the end. Linux tells it there since 6.15; on older
// systems no attempt can be left. Nor can one in a sandbox, in a batch, or with limits that a hierarchy of its own (cgroup v1)
// enforces: what enforces them ends with the worker.
package shell
