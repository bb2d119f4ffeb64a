package switchyardv1

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// DefaultCluster is the cluster of a K8sJobSpec that names none.
const DefaultCluster = "default"

// clusterPrefix begins the capability that a node has for each cluster of Kubernetes that it reaches.
const clusterPrefix = "kube/"

// IsClusterName reports whether a name can be that of a cluster: at most 63 letters, digits, '.', '_' and '-', with a letter or
// digit first.
func IsClusterName(name string) bool { return len(name) <= 63 && IsSessionID(name) }

// ClusterCapability returns the capability, with the value "true", of the nodes that reach a cluster.
func ClusterCapability(name string) string { return clusterPrefix + name }

// ClusterOfCapability returns the cluster that a capability is of, or false if it is of none.
func ClusterOfCapability(key string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, clusterPrefix)
	return name, ok && IsClusterName(name)
}

// ClusterOf returns the cluster that a K8sJobSpec names in its JSON form.
func ClusterOf(spec *structpb.Struct) string {
	fields := spec.GetFields()
	name := func(keys ...string) (text string) {
		for _, key := range keys {
			text = cmp.Or(text, fields[key].GetStringValue())
		}
		return text
	}
	return cmp.Or(name("cluster", "clusterContext", "cluster_context"), DefaultCluster)
}
