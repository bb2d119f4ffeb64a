package podspec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// GPU is the Kubernetes resource for one GPU of a task.
const GPU corev1.ResourceName = "nvidia.com/gpu"

// Resources returns the resources of a task as a Kubernetes resource list. Resources that the task does not set are left to the
// cluster.
func Resources(r *v1.Resources) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cores := r.GetCores(); r != nil && r.Cores != nil && cores > 0 {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(max(1, int64(cores*1000+0.5)), resource.DecimalSI)
	}
	if r.GetMemoryMb() > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(int64(r.GetMemoryMb())<<20, resource.BinarySI)
	}
	if gpus := policy.GPUsOf(r).Count; gpus > 0 {
		list[GPU] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return list
}

// resourceFields maps Kubernetes resources to the fields of Resources.
var resourceFields = map[corev1.ResourceName]string{corev1.ResourceCPU: "cores", corev1.ResourceMemory: "memoryMb", GPU: "gpus"}

// TaskProblems returns the conflicts between a task and its spec: variables, given by name, and resources that both set.
// template is the result of Template for the spec.
func TaskProblems(spec *v1.K8SJobSpec, template *corev1.PodTemplateSpec, variables []string, r *v1.Resources) []Problem {
	m := &merger{spec: spec, template: template, main: mainIndex(template.Spec.Containers)}
	if m.main < 0 {
		return nil
	}
	c := m.container()
	inTemplate := len(c.Env) - len(spec.GetEnv())
	for i, v := range c.Env {
		at := m.atMain("env", i)
		if i >= inTemplate {
			at = path{"env", i - inTemplate}
		}
		if slices.Contains(variables, v.Name) {
			m.add(at.below("name"), fmt.Sprintf("%s is %s, which the task also sets", at.below("name"), quote(v.Name)), "leave it out there, or in env and secretEnv of the task")
		}
	}
	asked := Resources(r)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		for _, of := range []struct {
			field string
			list  corev1.ResourceList
		}{{"limits", c.Resources.Limits}, {"requests", c.Resources.Requests}} {
			if _, set := of.list[name]; set {
				at := m.atMain("resources", of.field, string(name))
				m.addKey(at, fmt.Sprintf("%s and resources.%s of the task both set %s", at, resourceFields[name], strconv.Quote(string(name))), "leave one of them out")
			}
		}
	}
	return m.problems
}
