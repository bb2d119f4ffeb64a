package definition

import (
	"maps"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/podspec"
)

// kubernetesRules checks tasks of type k8s_job.
type kubernetesRules struct{ *decoder }

// check checks a task of type k8s_job and its spec. at is the path of the task.
func (r kubernetesRules) check(task *v1.TaskDefinition, spec *v1.K8SJobSpec, at *source.Path) {
	p := at.Field("spec")
	r.cluster(spec, p)
	template, problems := podspec.Template(spec)
	variables := slices.Concat(slices.Sorted(maps.Keys(task.GetEnv())), slices.Sorted(maps.Keys(task.GetSecretEnv())))
	for _, problem := range slices.Concat(problems, podspec.TaskProblems(spec, template, variables, task.GetResources())) {
		r.podProblem(problem, p)
	}
	target := at.Field("constraints").Field("targetNode")
	if node, part, ok := strings.Cut(task.GetConstraints().GetTargetNode(), ":"); ok {
		hint := "write " + node
		if strings.Contains(part, ":") {
			hint += "; resources.gpus is the number of GPUs of the pod"
		}
		r.Add(r.locate(target), target, "constraints.targetNode names a part of a machine, but the task runs in a cluster", hint)
	}
}

// podProblem reports a problem of the spec at p.
func (r kubernetesRules) podProblem(problem podspec.Problem, p *source.Path) {
	p = stepsBelow(p, problem.Path)
	position := r.locate(p)
	if problem.AtKey {
		position = r.locateKey(p)
	}
	r.Add(position, p, problem.Text, problem.Hint)
}

// cluster checks the name of the cluster, which determines the nodes that can reach it.
func (r kubernetesRules) cluster(spec *v1.K8SJobSpec, p *source.Path) {
	cluster, context := p.Field("cluster"), p.Field("clusterContext")
	for _, named := range []struct {
		name string
		at   *source.Path
	}{{spec.GetCluster(), cluster}, {spec.GetClusterContext(), context}} {
		if condition.HasTemplate(named.name) {
			r.Add(r.locate(named.at), named.at, named.at.Local()+" has an expression; the cluster must be known when the task is placed", "write its name from the flag --kube of the workers")
			continue
		}
		r.word(named.name, named.at, v1.IsClusterName, "not a valid cluster name", "at most 63 letters, digits, '.', '_' and '-', the first a letter or digit")
	}
	if spec.GetCluster() != "" && spec.GetClusterContext() != "" && spec.GetCluster() != spec.GetClusterContext() && !r.IsSettled(cluster) {
		r.Add(r.locateKey(context), context, "spec.clusterContext is another name for spec.cluster, but the two differ", "leave clusterContext out")
	}
}
