package switchyardv1

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// DefaultCluster is the cluster of a K8sJobSpec that does not name one.
const DefaultCluster = "default"

// clusterPrefix is the prefix of the capability that a node has for each Kubernetes cluster that it reaches.
const clusterPrefix = "kube/"

// IsClusterName reports whether name is a valid cluster name: at most 63 letters, digits, '.', '_' and '-', starting with a
// letter or digit.
func IsClusterName(name string) bool { return len(name) <= 63 && IsSessionID(name) }

// ClusterCapability returns the capability, with the value "true", of the nodes that reach a cluster.
func ClusterCapability(name string) string { return clusterPrefix + name }

// ClusterOfCapability returns the cluster of a capability, the inverse of ClusterCapability. ok is false for the capability of anything else.
func ClusterOfCapability(key string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, clusterPrefix)
	return name, ok && IsClusterName(name)
}

// ClusterOf returns the cluster in the JSON form of a K8sJobSpec, or DefaultCluster.
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
