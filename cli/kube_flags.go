package cli

import (
	"cmp"
	"time"

	"github.com/distribution/reference"
	"github.com/spf13/pflag"

	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/cli/exit"
	"switchyard/cli/stack"
)

const (
	// defaultKubeStart is how long the start of a pod is retried by default.
	defaultKubeStart = 5 * time.Minute
	// defaultKubeSweep is the default interval between two sweeps for Jobs whose runs have ended.
	defaultKubeSweep = 2 * time.Minute
)

// kubeFlags holds the flags for the Kubernetes clusters that the nodes of a process use.
type kubeFlags struct {
	clusters      []string
	helperImage   string
	startTimeout  time.Duration
	sweepInterval time.Duration
}

func (k *kubeFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&k.clusters, "kube", nil, "Kubernetes cluster in which this node runs Jobs, as NAME=FILE or NAME=FILE:CONTEXT with a kubeconfig, or NAME=in-cluster for the cluster of this pod; may be repeated")
	f.StringVar(&k.helperImage, "kube-helper-image", "", "image with switchyard as its entry point, which collects outputs of more than 4 KiB from the pods of Jobs")
	f.DurationVar(&k.startTimeout, "kube-start-timeout", defaultKubeStart, "how long to retry a pod whose image cannot be pulled or whose container cannot be created")
	f.DurationVar(&k.sweepInterval, "kube-sweep-interval", defaultKubeSweep, "how often a node looks for Jobs whose runs no longer exist; a Job found twice in a row is deleted")
}

// kubeFlagNames lists the flags that kubeFlags adds.
var kubeFlagNames = []string{"kube", "kube-helper-image", "kube-start-timeout", "kube-sweep-interval"}

func (k *kubeFlags) config() (cfg stack.KubeConfig, err error) {
	for _, text := range k.clusters {
		one, err := cluster.ParseFlag(text)
		if err != nil {
			return cfg, exit.Usagef("%w", err)
		}
		cfg.Clusters = append(cfg.Clusters, one)
	}
	if err := cluster.Validate(cfg.Clusters); err != nil {
		return cfg, exit.Usagef("%w", err)
	}
	if k.helperImage != "" {
		if _, err := reference.ParseNormalizedNamed(k.helperImage); err != nil {
			return cfg, exit.Usagef("--kube-helper-image %s: write the name of an image, such as registry.example.com/switchyard:1.0: %w", k.helperImage, err)
		}
	}
	if k.startTimeout != 0 && k.startTimeout < time.Second {
		return cfg, exit.Usagef("--kube-start-timeout %s: it must be at least 1s, or 0 for the default", k.startTimeout)
	}
	if k.sweepInterval != 0 && k.sweepInterval < time.Second {
		return cfg, exit.Usagef("--kube-sweep-interval %s: it must be at least 1s, or 0 for the default", k.sweepInterval)
	}
	cfg.SweepInterval = cmp.Or(k.sweepInterval, defaultKubeSweep)
	cfg.HelperImage, cfg.StartTimeout = k.helperImage, cmp.Or(k.startTimeout, defaultKubeStart)
	return cfg, nil
}
