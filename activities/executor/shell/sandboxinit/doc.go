// Package sandboxinit is the first process of a sandbox. It sets up the mounts, the network and the privileges of a Plan from
// inside new namespaces, and then executes the program.
//
//	started in new namespaces ──> Plan read ──> mounts ──> network ──> privileges dropped ──> ExecMessage ──> program
//	                                  └──────────── an error, which its starter reads
//
// With Plan.Enter it joins the namespaces of an existing sandbox instead of creating mounts and a network, so that another
// program runs there.
//
// On other systems than Linux it is empty. It imports the standard library and golang.org/x/sys only.
package sandboxinit
