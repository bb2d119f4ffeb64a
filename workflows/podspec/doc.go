// Package podspec builds the pod template of a task of type k8s_job from its spec, and reports problems of the spec.
//
//	K8sJobSpec.template ── decode.go, strictly ──> PodTemplateSpec ── template.go, merge.go: the fields of the spec ──> merged
//	                                                                  names.go: what Kubernetes limits
//	                                                                  reserved.go: what Switchyard sets itself
//
// A spec is checked twice: when its workflow is read, when values with `${{ }}` are not known yet and count as valid, and when
// the task starts.
//
// The package is pure: it imports proto, workflows/condition, workflows/interpreter, workflows/nearest, workflows/policy,
// workflows/structs, the types of Kubernetes, the parser of image names and the standard library.
package podspec
