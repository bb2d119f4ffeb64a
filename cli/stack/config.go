package stack

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"time"

	"switchyard/activities/election"
	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/activities/executor/subagent/model"
	"switchyard/activities/gatewayclient"
	"switchyard/activities/hostlist"
	"switchyard/activities/placement"
	"switchyard/activities/secrets"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/embedded"
	"switchyard/workers/node"
	"switchyard/workflows/definition"
)

// Config selects the parts of Switchyard that run in this process.
type Config struct {
	// Temporal configures an embedded server. nil means the server that Temporal's own environment names.
	Temporal *embedded.Options
	// Store is the URL of the store, or "" for a private folder that is removed with the stack.
	Store string
	// NodeGateways lists the gateways of the nodes, which release secrets to them and through which sessions reach them. It
	// is empty if the process has a control process or a gateway.
	NodeGateways gatewayclient.List
	// Token returns the token with which the nodes log in to their gateway. nil means that they have none.
	Token func() string
	// SpoolDir is where the nodes keep values while the store is unreachable, or "" for a private folder that is
	// removed with the stack.
	SpoolDir string
	// Control starts a control process with the given Role. "" means workers.RoleAuto.
	Control bool
	Role    workers.Role
	// Retention is how long the store keeps the logs and results of a closed run. 0 means workers.DefaultRetention.
	Retention time.Duration
	// CleanupInterval is the time between two removals of expired values. 0 means workers.DefaultCleanupInterval.
	CleanupInterval time.Duration
	// Leader sets the lease of the leader among the control processes.
	Leader election.Timing
	// LogQuota bounds the logs of each run, in bytes, if this process writes to the store itself. 0 means no limit.
	LogQuota int64
	// ArtifactQuota bounds the artifacts of each run, in bytes, where LogQuota applies. 0 means no limit.
	ArtifactQuota int64
	// Weights holds the factors of a node's score. nil means the defaults.
	Weights *placement.Weights
	// FIFO and FairHalfLife set the order of tasks with the same priority; see placement.Options.
	FIFO         bool
	FairHalfLife time.Duration
	// Defaults holds the settings for runs that do not set them.
	Defaults definition.RunDefaults
	// Gateway is the address at which the API is served, or "" for no gateway.
	Gateway string
	// SSH sets how SSH clients reach the gateway.
	SSH SSHDoor
	// GatewayFlag is the flag that chooses another address if Gateway is taken.
	GatewayFlag string
	// AllowedHosts lists the host names under which the gateway and the Web UI answer besides those of the machine.
	AllowedHosts []string
	// NodeTLS is the configuration with which nodes reach a gateway with an https URL. nil means the authorities of the
	// system.
	NodeTLS *tls.Config
	// TLS is the configuration with which the gateway serves https, or nil for http.
	TLS *tls.Config
	// PeerURL is the URL at which peers reach this gateway. "" means the address that it listens on. PeerTLS is the
	// configuration with which this gateway reaches peers with an https URL. nil means the authorities of the system.
	PeerURL string
	PeerTLS *tls.Config
	// Auth sets how callers of the gateway log in.
	Auth AuthConfig
	// SecretsKey is the key file of the secrets, or "" for one in a private folder that is removed with the stack.
	SecretsKey string
	// Notify holds the entries of the fleet: whom to tell about all runs that no other run has started.
	Notify []*v1.Notification
	// ExternalURL is the URL at which people open the page, for links in notifications. "" means the address of the gateway if this
	// process has a Temporal server of its own, and no links otherwise.
	ExternalURL string
	// NotifyAllow lists the hosts to which notifications may go although their addresses are not on the public internet.
	NotifyAllow hostlist.List
	// Metrics enables Prometheus metrics, which the gateway serves.
	Metrics bool
	// MetricsAddress is where a process without a gateway serves metrics, or "" for no metrics.
	MetricsAddress string
	// MetricsOptional lets the process start even if MetricsAddress is taken.
	MetricsOptional bool
	// Nodes lists the nodes to start.
	Nodes []NodeConfig
	// Version is the version of this program.
	Version string
	Logger  *slog.Logger
	// ExitFolders records the private folders.
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
	Host         string
	// ArtifactCache bounds the contents of artifacts that the node keeps, in bytes.
	ArtifactCache int64
	// ScratchDir is the parent of the private directories of attempts, or "" for the system's temporary folder. All
	// nodes of a process share the setting.
	ScratchDir string
	// LocalTempDir is the parent of the temporary directories of attempts, or "" for inside their private directories.
	// All nodes of a process share the setting.
	LocalTempDir string
	// PassEnv lists variables of this process that shell tasks also get. All nodes of a process share the setting.
	PassEnv []string
	// Secrets selects the files and variables of this machine that tasks may use as secrets. All nodes of a process
	// share the setting.
	Secrets secrets.Allowlist
	// MaxOutput is the most output of an attempt that its log keeps, in bytes.
	MaxOutput int64
	// OfflineAfter is how long the node may be silent before it counts as lost. 0 means 15 s.
	OfflineAfter time.Duration
	// DrainTimeout is how long attempts may continue when the node stops. 0 moves them at once.
	DrainTimeout time.Duration
	// KeepOnStop leaves attempts running for the next worker of the node where a keeper enforces their leases. The others
	// drain.
	KeepOnStop bool
	// Terms are the terms on which the node takes tasks.
	Terms *v1.NodeTerms
	// Gaming holds the rules that detect that a user plays a game on the machine. nil means the defaults.
	Gaming *node.GamingRules
	// Containers sets what containers may do on the node. All nodes of a process share the setting.
	Containers ContainerConfig
	// Agents sets what agents may do on the node. All nodes of a process share the setting.
	Agents AgentConfig
	// Kube holds the Kubernetes clusters in which the node runs Jobs. All nodes of a process share the setting.
	Kube KubeConfig
	// VMs sets which images virtual machines on the node may use. All nodes of a process share the setting.
	VMs VMConfig
}

// VMConfig sets which images the virtual machines of a process's nodes may use.
type VMConfig struct {
	// Images lists the folders with disk images that tasks may name.
	Images []string
}

// KubeConfig holds the Kubernetes clusters in which the nodes of a process run Jobs.
type KubeConfig struct {
	Clusters []cluster.Config
	// HelperImage is the image of the containers that copy files into and out of pods. "" means the default image.
	HelperImage string
	// StartTimeout is how long the start of a pod is retried while its image cannot be pulled or its container cannot
	// be created.
	StartTimeout time.Duration
	// SweepInterval is the interval between two sweeps for Jobs whose runs have ended.
	SweepInterval time.Duration
}

// AgentConfig sets what agents may do and use on the nodes of a process.
type AgentConfig struct {
	// Tools lists the tools that agents may use.
	Tools []string
	// FetchHosts lists the hosts that the tool "fetch" may read.
	FetchHosts []string
	// KeyFiles maps a model provider to the file with its key.
	KeyFiles map[string]string
	// Prices holds the prices of the models.
	Prices model.Prices
}

// ContainerConfig sets what containers may do and use on the nodes of a process.
type ContainerConfig struct {
	Policy *v1.ContainerPolicy
	// Mounts lists the directories mounted in every container.
	Mounts []*v1.Mount
	// RegistryAuth maps the names that specs use to files with registry credentials.
	RegistryAuth map[string]string
}

// Drains reports whether any node lets its attempts continue for a while when it stops.
func (c Config) Drains() bool {
	return slices.ContainsFunc(c.Nodes, func(n NodeConfig) bool { return n.DrainTimeout > 0 })
}

// KeepsOnStop reports whether any node leaves attempts to its next worker when it stops.
func (c Config) KeepsOnStop() bool {
	return slices.ContainsFunc(c.Nodes, func(n NodeConfig) bool { return n.KeepOnStop })
}

// SSHDoor sets how SSH clients reach a gateway.
type SSHDoor struct {
	// Address is where the gateway listens for SSH clients, or "" for nowhere.
	Address string
	// Host is the name under which clients reach the gateway, or "" for the name that they already use.
	Host string
	// Port is the port at which clients reach the gateway. 0 means the port of Address.
	Port int
}
