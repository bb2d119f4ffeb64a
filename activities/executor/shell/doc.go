// Package shell runs tasks of type "shell": a command for `sh -c`, or for `sh -ec` where it has
// more than one line, or a list of words that runs without a shell. It may import proto, activities/executor,
// activities/executor/inside, github.com/creack/pty, golang.org/x/sys and the standard library; it knows no Temporal.
//
// # What a program gets
//
// Its environment is what inheritedVariables and Options.PassEnv name of the node's, because
// the rest may hold credentials of the worker, then Attempt.Env, then PWD and
// SWITCHYARD_CLAIM, the attempt's id. Standard input is Attempt.Stdin, else empty. It leads a
// session of its own: Ctrl-C in the worker's terminal does not reach it, and it
// cannot stop to ask at that terminal.
//
// CUDA_VISIBLE_DEVICES holds the indices of the GPUs that the attempt was given,
// whatever the task sets, and is empty when the node has GPUs and it was given
// none. A program that is bound to a NUMA node is started by numactl.
//
// # How it ends
//
//	          exits                        no process left
//	running ─────────▶ lingering, 200 ms ──────────────────┐
//	   │                    │ time over                    ▼
//	   │ ctx done           └──────────▶ SIGKILL to all ─▶ ended
//	   │                                     ▲             ▲
//	   └──▶ SIGTERM to all ─▶ stopping ──────┘             │
//	                           │   grace over              │
//	                           └───────────────────────────┘
//	                               no process left
//
// A program that exits takes what it left in the background with it. The
// short linger lets helpers at the end of a pipe, such as the tee of a process
// substitution, write out what they hold. They get no SIGTERM: the
// task was not asked to stop, and a program that wants to wait for its children can.
//
// # Who belongs to an attempt
//
// A process group does not hold a program that forks twice or calls setsid. Of
// these ways, the first that works on the machine is taken:
//
//   - cgroup: a cgroup2 directory for each attempt, which later ones have again if it
//     is as it was, and the kernel ends all of it at once. Nothing leaves it, short of
//     a privileged program that moves itself to another one; that is looked for in /proc
//     by its marker a moment after the attempt has ended, and ended and logged.
//   - mark: the worker becomes the subreaper of all its descendants, and an
//     attempt's processes are found in /proc by SWITCHYARD_CLAIM in their
//     environment, by their session, and by descent from such a process. What
//     wipes its environment, starts a session and is orphaned, all three, is missed.
//   - group: the process group alone, on systems other than Linux.
//
// # Limits
//
// The memory of an attempt with such a limit is limited as a whole, swap included, and what
// the kernel's own count says was killed for it is distinguished from a kill of another
// origin. With cgroup2 the attempt's directory has the limit, once its controllers can be
// had: the worker is in the root, or alone in its directory, which it leaves for one below
// then. With cgroup v1 there is a directory more for each attempt, and a thread
// in it that forks. Where neither works there is no limit, and the attempt's log says so.
//
// # Sandboxes
//
// For a task with `sandbox: true` the worker starts its own program again, which builds
// the sandbox around itself and then executes the task's:
//
//	user            one of a range that is the attempt's alone, with a group of its own
//	privileges      no capability, and no way to one by setuid programs
//	files           read-only but the workspace, the shared directory, /tmp and /dev/shm;
//	                /tmp is the attempt's own, and the node's is not seen, but for
//	                the working directory; other workspaces are not seen
//	processes       those of others are neither seen in /proc nor signalled
//	environment     PATH, the locale and TZ of the node's, then as above; HOME is /tmp
//	network         a loopback interface of its own and nothing else; with
//	                `network: node` the node's
//	limits          memory, processor, processes, as Attempt.Limits says
//
// A part that cannot be made is an error of the node; CanSandbox reports it beforehand.
//
// # Who enters
//
// A program that is run in an attempt by Enter is one of the attempt's: it is in its process tree, with its limits, its
// environment, its user and in its sandbox, and leads a session of its own. It gets SIGHUP when its caller is gone, or when the attempt's own
// program has exited, and soon afterwards SIGKILL. What it leaves in the background stays for as long as the attempt.
//
// # Batches
//
// A batch of attempts has one process tree with its limits, one user if in a sandbox, one
// entry in the watchdog and shared pipes. What a program has printed is in the pipes when nothing of it is left, so that the
// next one may have them, too. One that has left something behind, which had to be
// ended, costs the batch its pipes; one that SIGKILL has ended costs it its cgroup,
// because Linux continues to kill what is forked into a cgroup that was killed.
// SWITCHYARD_CLAIM is that of the batch.
//
// # When the worker dies, or is held up
//
// The parent-death signal ends the program itself; it follows the thread that
// forked, so one thread that lives as long as the Executor forks for all
// attempts. It is not inherited, so the rest is the business of a watchdog
// process, see ServeIfAsked. It also holds the leases of the attempts, which
// the worker reports to it whenever they are renewed: a worker that is stopped
// (SIGSTOP, a debugger, a frozen machine) renews none, and the watchdog ends its
// attempts before another node may be given their tasks.
package shell
