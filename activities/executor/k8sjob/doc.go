// Package k8sjob runs tasks of type "k8s_job": each attempt is a Job of a Kubernetes cluster, which outlives the node that watches
// it, and which the next node of that cluster continues.
//
//	Run ──▶ create, or adopt ──▶ follow ──┬─ its program has ended ──▶ read the rest of its log ──▶ Recorded sets a time to live
//	             │                        ├─ cancelled ──▶ delete, and wait until the pod is gone
//	             │                        └─ let go, or another node has taken it over
//	             └─ the annotation switchyard.dev/claim says which dispatch has the Job; it only grows
//
// The name of the Job follows from the attempt, so that a second dispatch finds the Job of the first one. What a pod says is read by
// podstate, the log of a pod by podlog, the files of its program by podhelper; manifest makes the Job, jobwatch keeps the Jobs of a
// namespace in memory, and cluster has the connections.
//
// Of this module it may import activities/executor and the packages below this one, proto, workflows/nearest and workflows/podspec.
package k8sjob
