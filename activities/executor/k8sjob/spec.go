package k8sjob

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/cluster"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/podspec"
)

// badSpec returns a StartError for a spec that no attempt could start with.
func badSpec(format string, args ...any) error {
	return &executor.StartError{ExitCode: 126, BadSpec: true, Err: fmt.Errorf("k8s_job spec: "+format, args...)}
}

// parseSpec reads the spec of a task.
func parseSpec(s *structpb.Struct) (*v1.K8SJobSpec, error) {
	if s == nil {
		return nil, badSpec("it is missing")
	}
	data, err := protojson.Marshal(s)
	if err != nil {
		return nil, badSpec("%w", err)
	}
	spec := &v1.K8SJobSpec{}
	if err := protojson.Unmarshal(data, spec); err != nil {
		// The position in the error refers to generated text.
		text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
		if _, after, found := strings.Cut(text, "): "); found {
			text = after
		}
		return nil, badSpec("%w", errors.New(text))
	}
	return spec, nil
}

// problems returns the problems of a pod template as one error, or nil if there are none.
func problems(found []podspec.Problem) error {
	var texts []string
	for _, p := range found {
		texts = append(texts, p.String())
	}
	if texts == nil {
		return nil
	}
	return badSpec("%w", errors.New(strings.Join(texts, ". ")))
}

// clusterOf returns the name of the cluster in a spec.
func clusterOf(spec *v1.K8SJobSpec) string {
	return cmp.Or(spec.GetCluster(), spec.GetClusterContext(), v1.DefaultCluster)
}

// target returns the cluster and the namespace of a spec. The cluster is nil if the node does not have it.
func (e *Executor) target(spec *v1.K8SJobSpec) (*cluster.Cluster, string) {
	c := e.o.Clusters.Get(clusterOf(spec))
	if c == nil {
		return nil, ""
	}
	return c, cmp.Or(spec.GetNamespace(), c.Namespace)
}
