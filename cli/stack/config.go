package stack

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"time"

	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/activities/executor/subagent/model"
	"switchyard/activities/placement"
	"switchyard/activities/secrets"
	"switchyard/dev/embedded"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/node"
	"switchyard/workflows/definition"
)

// Config describes the parts of Switchyard that run in this process.
type Config struct {
	// Temporal starts an embedded server, or is nil to use the server that Temporal's
	// own environment names.
	Temporal *embedded.Options
	// Store is the URL of the store, or "" for a private folder that ends with the stack.
	Store string
	// NodeGateway is the URL of the gateway that releases secrets to the nodes of a process without a control process.
	NodeGateway string
	// Token returns the token of the nodes for their gateway; nil: they have none.
	Token func() string
	// SpoolDir is where the nodes keep values while the store is away, or "" for a private folder that ends with the stack.
	SpoolDir string
	// Control starts a control process with the given Role, which is workers.RoleAuto if empty.
	Control bool
	Role    workers.Role
	// Retention is how long the store keeps the logs and results of a closed run, or 0 for workers.DefaultRetention.
	Retention time.Duration
	// LogQuota bounds the logs of each run, in bytes, where this process writes to the store itself, or is 0 for no limit.
	LogQuota int64
	// Weights are the factors of a node's score, or nil for the defaults.
	Weights *placement.Weights
	// Defaults are the settings of runs that do not set them.
	Defaults definition.RunDefaults
	// Gateway is the address to serve the API at, or "" for no gateway.
	Gateway string
	// SSH is how SSH clients reach the gateway.
	SSH SSHDoor
	// GatewayFlag is the flag that chooses another address if that one is taken.
	GatewayFlag string
	// AllowedHosts are the names under which the gateway and the Web UI answer besides those of the machine.
	AllowedHosts []string
	// NodeTLS is how nodes reach a gateway with an https URL, or nil for the authorities of the system.
	NodeTLS *tls.Config
	// TLS is how the gateway serves https, or nil for http.
	TLS *tls.Config
	// PeerURL is where other gateways reach this one, or "" for the address that it listens on. PeerTLS is how it reaches those
	// with an https URL, or nil for the authorities of the system.
	PeerURL string
	PeerTLS *tls.Config
	// Auth is how callers of the gateway log in.
	Auth AuthConfig
	// SecretsKey is the file with the key of the secrets, or "" for one in a private folder that ends with the stack.
	SecretsKey string
	// Metrics keeps figures for Prometheus, which the gateway serves.
	Metrics bool
	// MetricsAddress is where a process without a gateway serves figures, or "" if it keeps none.
	MetricsAddress string
	// MetricsOptional lets the process start although that address is taken.
	MetricsOptional bool
	// Nodes are the nodes to start.
	Nodes []NodeConfig
	// Version is that of this program.
	Version string
	Logger  *slog.Logger
	// ExitFolders receives the private folders.
	ExitFolders *ExitFolders
}

// NodeConfig describes a node.
type NodeConfig struct {
	Name         string
	Labels       []string
	Capabilities map[string]string
	MaxParallel  int
	WorkDir      string
	SharedDir    string
	// ScratchDir is where attempts get their private directories, or "" for the folder for temporary files. The nodes of a
	// process share it.
	ScratchDir string
	// LocalTempDir is where attempts get their temporary directories, or "" for inside their private ones. The nodes of a
	// process share it.
	LocalTempDir string
	// PassEnv are variables of this process that shell tasks get, too. The nodes of a process share it.
	PassEnv []string
	// Secrets are the files and variables of this machine whose values tasks may ask for as secrets. The nodes of a process
	// share it.
	Secrets secrets.Allowlist
	// MaxOutput is how much output of an attempt its log keeps, in bytes.
	MaxOutput int64
	// OfflineAfter is how long the node may be silent before it counts as lost, or 0 for 15 s.
	OfflineAfter time.Duration
	// DrainTimeout is how long its attempts may continue when the node stops, or 0 to move them at once.
	DrainTimeout time.Duration
	// Gaming are the rules that detect that a user plays on the machine, or nil for the defaults.
	Gaming *node.GamingRules
	// Containers is what containers may do on the node. The nodes of a process share it.
	Containers ContainerConfig
	// Agents is what agents may do on the node. The nodes of a process share it.
	Agents AgentConfig
	// Kube has the clusters of Kubernetes that the node runs Jobs in. The nodes of a process share it.
	Kube KubeConfig
	// VMs is what virtual machines may be made of on the node. The nodes of a process share it.
	VMs VMConfig
}

// VMConfig describes what the virtual machines of the nodes of a process may be made of.
type VMConfig struct {
	// Images are the folders with disk images that tasks may name.
	Images []string
}

// KubeConfig describes the clusters of Kubernetes that the nodes of a process run Jobs in.
type KubeConfig struct {
	Clusters []cluster.Config
	// HelperImage is that of the containers that carry files into and out of pods, or "" for the default one.
	HelperImage string
	// StartTimeout is how long a pod is tried whose image cannot be pulled, or whose container cannot be made.
	StartTimeout time.Duration
	// SweepInterval is the time between two looks for Jobs whose runs are gone.
	SweepInterval time.Duration
}

// AgentConfig describes what agents may do, and get, on the nodes of a process.
type AgentConfig struct {
	// Tools are the names of the tools that agents may use.
	Tools []string
	// FetchHosts are the hosts that the tool "fetch" may read.
	FetchHosts []string
	// KeyFiles are files with keys for models, by provider.
	KeyFiles map[string]string
	// Prices are those of the models.
	Prices model.Prices
}

// ContainerConfig describes what containers may do, and get, on the nodes of a process.
type ContainerConfig struct {
	Policy *v1.ContainerPolicy
	// Mounts are in every container.
	Mounts []*v1.Mount
	// RegistryAuth are files with credentials, by the names that specs use for them.
	RegistryAuth map[string]string
}

// Drains reports whether attempts may continue for a while when the nodes stop.
func (c Config) Drains() bool {
	return slices.ContainsFunc(c.Nodes, func(n NodeConfig) bool { return n.DrainTimeout > 0 })
}

// SSHDoor is how SSH clients reach a gateway.
type SSHDoor struct {
	// Address is where the gateway listens for them, or "" for nowhere.
	Address string
	// Host is the name under which they reach it, or "" for the one that they know it by.
	Host string
	// Port is where they reach it, or 0 for the port of Address.
	Port int
}
