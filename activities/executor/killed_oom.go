package executor

// An attempt ends as killed_oom if its program failed and the kernel, or the container engine, had killed a process of the
// attempt for its memory use:
//
//   - Each executor detects this where its programs run: the shell in the cgroup, containers in the reports of the engine,
//     Jobs in the status of the pod, virtual machines in the cgroup of QEMU. Without a cgroup, the attempt fails by SIGKILL.
//   - The exit code of the program decides (see Result.SetOOM). A program that succeeded is completed, with a warning.
//     Pods and machines report only the end of the program itself, and no warning.
//   - A program that was stopped, or whose lease is lost, ends in that way even if memory was short, too.
//   - The node answers with the state killed_oom and the reason oom (see interpret in activities/taskrunner/outcome.go).
//   - The node is not at fault and keeps its standing. The task is retried like a failed one (see RetryableEndStates in
//     proto/switchyard/v1/states.go).

// oomWarning is the Warning of a program that succeeded although the kernel killed one of its processes.
const oomWarning = "the kernel killed a process of the task for its memory use, and the command still succeeded; check its output, or raise memoryMb"

// SetOOM records that a process of the attempt was killed for its memory use. The exit code must be set before.
func (r *Result) SetOOM() {
	if r.ExitCode == 0 {
		r.Warning = oomWarning
		return
	}
	r.OOMKilled = true
}
