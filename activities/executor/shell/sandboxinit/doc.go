// Package sandboxinit is the first process of a sandbox: it makes the mounts, the network and the privileges that a Plan
// asks for from inside of new namespaces, and then becomes the program.
//
//	started in new namespaces ──> Plan read ──> mounts ──> network ──> privileges dropped ──> ExecMessage ──> program
//	                                  └──────────── an error, which its starter reads
//
// With Plan.Enter it joins the namespaces of a sandbox instead of making mounts and a network, so that a further program runs there.
//
// On other systems than Linux it is empty. It imports the standard library and golang.org/x/sys only.
package sandboxinit
