// Package k8sjob runs tasks of type "k8s_job". Each attempt is a Job of a Kubernetes cluster. The Job outlives the node
// that watches it, and another node of the same cluster continues the attempt.
//
//	Run ──▶ create, or adopt ──▶ follow ──┬─ its program has ended ──▶ read the rest of its log ──▶ Recorded sets a time to live
//	             │                        ├─ cancelled ──▶ delete, and wait until the pod is gone
//	             │                        └─ let go, or another node has taken it over
//	             └─ the annotation switchyard.dev/claim says which dispatch has the Job; it only grows
//
// The name of the Job is derived from the attempt, so that a second dispatch finds the Job of the first one. podstate
// interprets the status of a pod, podlog copies its log, and podhelper transfers the files of its program. manifest
// builds the Job, jobwatch keeps the Jobs of a namespace in memory, and cluster holds the connections.
//
// Of this module it may import activities/executor and the packages below this one, proto, workflows/nearest and workflows/podspec.
package k8sjob
