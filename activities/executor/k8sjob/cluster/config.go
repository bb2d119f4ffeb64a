package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// InCluster stands for the cluster of the pod that runs this process, in place of a kubeconfig.
const InCluster = "in-cluster"

// Config is a cluster as given in a flag.
type Config struct {
	// Name is the name of the cluster in the specs of tasks.
	Name string
	// File is the path of the kubeconfig, or InCluster.
	File string
	// Context is the context in the kubeconfig, or "" for the current one.
	Context string
}

// String returns the flag that names the cluster.
func (c Config) String() string {
	text := "--kube " + c.Name + "=" + c.File
	if c.Context != "" {
		text += ":" + c.Context
	}
	return text
}

// ParseFlag parses NAME=FILE[:CONTEXT]. FILE is the longest prefix before a ':' that exists as a file, so both paths
// and context names may contain a ':'. If there is no such file, FILE ends at the first ':'. A relative path is made
// absolute.
func ParseFlag(text string) (Config, error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok || name == "" || rest == "" {
		return Config{}, fmt.Errorf("--kube %s: write NAME=FILE, or NAME=FILE:CONTEXT, as in prod=/etc/switchyard/kubeconfig; %s stands for the cluster of this pod", text, InCluster)
	}
	cfg := Config{Name: name}
	cfg.File, cfg.Context = cutContext(rest)
	if cfg.File == InCluster {
		return cfg, nil
	}
	path, err := filepath.Abs(cfg.File)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", cfg, err)
	}
	cfg.File = path
	return cfg, nil
}

// cutContext splits FILE[:CONTEXT].
func cutContext(text string) (file, context string) {
	if rest, ok := strings.CutPrefix(text, InCluster); ok && (rest == "" || rest[0] == ':') {
		return InCluster, strings.TrimPrefix(rest, ":")
	}
	for end := len(text); end > 0; end = strings.LastIndexByte(text[:end], ':') {
		if info, err := os.Stat(text[:end]); err == nil && !info.IsDir() {
			return text[:end], strings.TrimPrefix(text[end:], ":")
		}
	}
	file, context, _ = strings.Cut(text, ":")
	return file, context
}

// Validate reports everything that keeps the clusters from being opened: names, kubeconfigs and contexts. It contacts
// no cluster.
func Validate(configs []Config) error {
	_, err := loadAll(configs)
	return err
}

// loadAll loads the clusters in the order of configs.
func loadAll(configs []Config) (all []*loaded, err error) {
	var problems []error
	seen := map[string]bool{}
	for _, cfg := range configs {
		switch {
		case !v1.IsClusterName(cfg.Name):
			problems = append(problems, fmt.Errorf("%s: the name of a cluster has at most 63 letters, digits, '.', '_' and '-', with a letter or digit first", cfg))
			continue
		case seen[cfg.Name]:
			problems = append(problems, fmt.Errorf("%s: another --kube has the name %s; give each cluster a name of its own", cfg, cfg.Name))
			continue
		}
		seen[cfg.Name] = true
		one, err := load(cfg)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", cfg, err))
			continue
		}
		all = append(all, one)
	}
	return all, errors.Join(problems...)
}
