// Package fakekubelet simulates nodes whose pods run nothing. It registers nodes, renews their leases, and reports for
// each pod on them what a kubelet would report while its containers run, end and are killed. Annotations of the pod
// define how it ends; by default its containers end at once with exit code 0:
//
//	test.switchyard.dev/runs-for   how long its containers run, such as 1m
//	test.switchyard.dev/exit       their exit code, such as 3
//	test.switchyard.dev/reason     the reason of the end, such as OOMKilled
//	test.switchyard.dev/message    the message of the end, as in /dev/termination-log
//	test.switchyard.dev/waiting    a reason for which they never start, such as ImagePullBackOff
//	test.switchyard.dev/log        what they print when they start
//
//	Pending ──► Running ──► Succeeded, Failed
//	   │           │            │
//	   └───────────┴────────────┴──► removed, after the pod is deleted
package fakekubelet
