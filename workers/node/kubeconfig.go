package node

import (
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// inCluster stands for the context of a process in a pod, which has no name.
const inCluster = "in-cluster"

// kubeContext returns the current context in the same way as kubectl: from the files in KUBECONFIG
// (the first that sets a context wins), or else from the file in the home directory. Without a
// context, it returns inCluster in a pod, and otherwise "".
func (s Surroundings) kubeContext() string {
	var files []string
	if list := s.Getenv("KUBECONFIG"); list != "" {
		files = filepath.SplitList(list)
	} else if s.Home != "" {
		files = []string{filepath.Join(s.Home, ".kube", "config")}
	}
	current, known := "", map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var config struct {
			Current  string `yaml:"current-context"`
			Contexts []struct {
				Name string `yaml:"name"`
			} `yaml:"contexts"`
		}
		if err := yaml.Unmarshal(text, &config); err != nil {
			continue
		}
		if current == "" {
			current = config.Current
		}
		for _, c := range config.Contexts {
			known[c.Name] = true
		}
	}
	if known[current] {
		return current
	}
	if _, err := os.Stat(s.Token); err == nil && s.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return inCluster
	}
	return ""
}
