// Package podspec makes the pod template of a task of type k8s_job out of its spec, and reports what is wrong with the spec.
//
//	K8sJobSpec.template ── decode.go, strictly ──> PodTemplateSpec ── template.go, merge.go: the fields of the spec ──> merged
//	                                                                  names.go: what Kubernetes limits
//	                                                                  reserved.go: what Switchyard sets itself
//
// A spec is checked twice: when its workflow is read, where values with `${{ }}` are not known yet and count as right, and
// when the task starts.
//
// The package is pure: it imports proto, workflows/condition, workflows/nearest, the types of Kubernetes, the parser of image
// names and the standard library.
package podspec
