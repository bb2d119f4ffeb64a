// Package watchdogproc is the watchdog process of a worker. It ends each attempt whose lease ends, and all attempts
// when the worker dies.
//
//	watching ──(the lease of an attempt ends)──> stop signal ──(grace period)──> SIGKILL
//	    └──(the worker has died)──> all attempts end ──> exit
//
// On other systems than Linux it is empty.
package watchdogproc
