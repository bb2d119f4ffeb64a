package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/activities/executor/shell"
	"switchyard/activities/secrets"
	"switchyard/cli/config"
	"switchyard/cli/doctor"
	"switchyard/cli/exit"
	"switchyard/cli/stack"
	"switchyard/workers/node"
)

// maxLocalNodes bounds the nodes of one process.
const maxLocalNodes = 100

// nodeFlags holds the flags that describe the nodes of a process.
type nodeFlags struct {
	// command is the command that has the flags, or "" for worker.
	command         string
	count           int
	name            string
	labels          []string
	capabilities    []string
	maxParallel     int
	workDir         string
	sharedDir       string
	host            string
	scratchDir      string
	localTempDir    string
	passEnv         []string
	allowSecrets    []string
	maxOutputMB     int64
	artifactCacheGB int64
	offlineAfter    time.Duration
	drainTimeout    time.Duration // the value before the flags are read is the default
	terms           termsFlags
	gaming          gamingFlags
	containers      containerFlags
	agents          agentFlags
	kube            kubeFlags
	vms             vmFlags
}

// addOne adds the flags of a command that runs one node.
func (n *nodeFlags) addOne(f *pflag.FlagSet) {
	f.StringVar(&n.name, "name", "", "name of the node, unique in the fleet: at most 63 of [a-z0-9.-]")
	f.StringSliceVar(&n.labels, "label", nil, "label of the node; may be repeated")
	f.StringSliceVar(&n.capabilities, "capability", nil, "capability of the node as key=value; may be repeated")
	f.IntVar(&n.maxParallel, "max-parallel", 0, "maximum number of tasks that a node runs at once (default its number of cores, at least 4)")
	f.StringVar(&n.workDir, "work-dir", "", "base folder of relative working directories (default the current one)")
	f.StringVar(&n.sharedDir, "shared-dir", "", "folder shared by all nodes, passed to tasks as SWITCHYARD_SHARED_DIR")
	f.StringVar(&n.host, "host", "", "address under which other nodes reach this one, for gangs (default the one from which it reaches Temporal)")
	f.StringVar(&n.scratchDir, "scratch-dir", "", "parent folder of the private directories of attempts, and of what a restarted worker finds again (default the system's temporary folder, and /var/lib/switchyard or your state directory)")
	f.StringVar(&n.localTempDir, "temp-dir", "", "parent folder of the temporary directories of attempts (default their private directories)")
	f.StringSliceVar(&n.passEnv, "pass-env", nil, "environment variables to pass to shell tasks besides PATH, HOME, the locale and the like, such as SSH_AUTH_SOCK,AWS_*; may be repeated")
	f.Int64Var(&n.artifactCacheGB, "artifact-cache-gb", 10, "disk space for artifacts that the node keeps for later tasks, in GiB; 0 keeps none")
	f.Int64Var(&n.maxOutputMB, "max-output-mb", 256, "maximum size of an attempt's log, in MiB")
	f.DurationVar(&n.offlineAfter, "offline-after", 15*time.Second, "how long a node may be silent before it counts as offline")
	f.DurationVar(&n.drainTimeout, "drain-timeout", n.drainTimeout, "how long running tasks may continue when the node stops, before they move to another node")
	n.terms.add(f)
	n.gaming.add(f)
	n.containers.add(f)
	n.agents.add(f)
	n.kube.add(f)
	n.vms.add(f)
}

// addSecrets adds the flag of a command whose tasks may use only some secrets of the machine.
func (n *nodeFlags) addSecrets(f *pflag.FlagSet) {
	f.StringSliceVar(&n.allowSecrets, "allow-secret", nil, "files and environment variables that the secretEnv of tasks may name, such as file:/run/secrets/*,env:DEPLOY_*; tasks never inherit these variables; may be repeated")
}

// secrets returns the secrets that tasks may use: all of them where the tasks run for the person who starts the
// process.
func (n *nodeFlags) secrets() (secrets.Allowlist, error) {
	if n.command != "" {
		return secrets.AllowAll(), nil
	}
	list, err := secrets.ParseAllowlist(n.allowSecrets)
	if err != nil {
		return list, exit.Usagef("--allow-secret %w", err)
	}
	return list, nil
}

// addSome adds the flags of a command that runs several nodes.
func (n *nodeFlags) addSome(f *pflag.FlagSet) {
	f.IntVar(&n.count, "nodes", 1, "number of nodes in this process")
	n.addOne(f)
	f.Lookup("name").Usage = `name of the node (default "local", or local-1, local-2, ... for several nodes)`
}

// configs returns the nodes that the flags describe, but at least the given number.
func (n *nodeFlags) configs(least int) ([]stack.NodeConfig, error) {
	capabilities, err := config.ParsePairs("capability", n.capabilities)
	switch {
	case err != nil:
		return nil, err
	case n.count < least || n.count > maxLocalNodes:
		return nil, exit.Usagef("--nodes %d: it must be %d to %d", n.count, least, maxLocalNodes)
	case n.offlineAfter != 0 && n.offlineAfter < time.Second:
		return nil, exit.Usagef("--offline-after %s: it must be at least 1s", n.offlineAfter)
	case n.drainTimeout < 0:
		return nil, exit.Usagef("--drain-timeout %s: it must not be negative", n.drainTimeout)
	case n.artifactCacheGB < 0:
		return nil, exit.Usagef("--artifact-cache-gb %d: it must be at least 0", n.artifactCacheGB)
	case n.maxOutputMB < 0:
		return nil, exit.Usagef("--max-output-mb %d: it must be at least 1, or 0 for the default", n.maxOutputMB)
	case n.maxParallel < 0:
		return nil, exit.Usagef("--max-parallel %d: it must be at least 1, or 0 for the default", n.maxParallel)
	}
	for _, name := range n.passEnv {
		if err := shell.CheckPassName(name); err != nil {
			return nil, exit.Usagef("--pass-env: %w", err)
		}
	}
	if err := checkFolder("scratch-dir", n.scratchDir); err != nil {
		return nil, err
	}
	if err := checkFolder("temp-dir", n.localTempDir); err != nil {
		return nil, err
	}
	terms, err := n.terms.terms()
	if err != nil {
		return nil, err
	}
	gaming, err := n.gaming.rules()
	if err != nil {
		return nil, err
	}
	containers, err := n.containers.config()
	if err != nil {
		return nil, err
	}
	containers.Policy.Command = n.command
	agents, err := n.agents.config()
	if err != nil {
		return nil, err
	}
	kube, err := n.kube.config()
	if err != nil {
		return nil, err
	}
	vms, err := n.vms.config()
	if err != nil {
		return nil, err
	}
	allowed, err := n.secrets()
	if err != nil {
		return nil, err
	}
	base := "local"
	if n.name != "" {
		base = n.name
	}
	var nodes []stack.NodeConfig
	for i := range n.count {
		name := base
		if n.count > 1 {
			name = fmt.Sprintf("%s-%d", base, i+1)
		}
		if near := node.Name(name); near != name {
			return nil, exit.Usagef("--name %q: use at most 63 of a-z, 0-9, '.' and '-', such as %s", name, near)
		}
		nodes = append(nodes, stack.NodeConfig{
			Name: name, Labels: n.labels, Capabilities: capabilities, Terms: terms,
			MaxParallel: n.maxParallel, WorkDir: n.workDir, SharedDir: n.sharedDir, Host: n.host, ScratchDir: n.scratchDir, LocalTempDir: n.localTempDir, PassEnv: n.passEnv, Secrets: allowed, MaxOutput: n.maxOutputMB << 20, ArtifactCache: n.artifactCacheGB << 30,
			OfflineAfter: n.offlineAfter, DrainTimeout: n.drainTimeout, Gaming: gaming, Containers: containers, Agents: agents, Kube: kube, VMs: vms,
		})
	}
	return nodes, nil
}

// checkFolder returns an error if this process cannot create folders in the folder that a flag names; "" is allowed.
func checkFolder(flag, dir string) error {
	if dir == "" {
		return nil
	}
	if err := doctor.ProbeFolder(dir); err != nil {
		return exit.Usagef("--%s %s: it must be a folder that this user can write to: %w", flag, dir, err)
	}
	return nil
}

// checkNewFolder returns an error if this process can neither use nor create the folder that a flag names.
func checkNewFolder(flag, dir string) error {
	if err := doctor.CheckNewFolder(dir); err != nil {
		return exit.Usagef("--%s %s: it must be a folder that this user can write to: %w", flag, dir, err)
	}
	return nil
}

// onlyLocal lists the flags that make no sense for a run on a gateway.
var onlyLocal = slices.Concat([]string{"nodes", "name", "label", "capability", "max-parallel", "work-dir", "shared-dir", "host", "scratch-dir", "temp-dir", "pass-env", "max-output-mb", "offline-after", "drain-timeout", "only-for", "reserve-for", "while", "hours", "gaming-process", "gaming-gpu-load",
	"allow-mount", "mount", "allow-privileged", "allow-host-network", "allow-cap", "registry-auth", "store", "log-quota-gb", "artifact-quota-gb"}, agentFlagNames, kubeFlagNames)

// refuseLocal returns an error if a flag describes nodes of this process.
func refuseLocal(cmd *cobra.Command) error {
	for _, name := range onlyLocal {
		if cmd.Flags().Changed(name) {
			return exit.Usagef("--%s applies only to a run in this process; leave out either it or the gateway (--gateway, SWITCHYARD_GATEWAY)", name)
		}
	}
	return nil
}
