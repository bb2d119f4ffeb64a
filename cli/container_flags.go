package cli

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/activities/executor/container"
	"switchyard/cli/config"
	"switchyard/cli/exit"
	"switchyard/cli/stack"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// containerFlags holds the flags that set what containers may do on the nodes of a process.
type containerFlags struct {
	privileged   bool
	hostNetwork  bool
	mounts       []string
	standing     []string
	capabilities []string
	auths        []string
}

func (c *containerFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&c.mounts, "allow-mount", nil, "folder that containers may mount, including its subfolders; append :ro for read-only; may be repeated")
	f.StringSliceVar(&c.standing, "mount", nil, "folder to mount into every container, as FOLDER:PATH, or FOLDER:PATH:ro for read-only; may be repeated")
	f.BoolVar(&c.privileged, "allow-privileged", false, "allow privileged containers, which have full control of this machine")
	f.BoolVar(&c.hostNetwork, "allow-host-network", false, "allow containers to use the host network")
	f.StringSliceVar(&c.capabilities, "allow-cap", nil, "Linux capability that containers may add, such as NET_ADMIN, or ALL; may be repeated")
	f.StringSliceVar(&c.auths, "registry-auth", nil, "registry credentials as NAME=FILE, where FILE contains {\"username\": ..., \"password\": ..., \"registry\": ...} or is a Docker config.json; may be repeated")
}

var capabilityName = regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`)

func (c *containerFlags) config() (stack.ContainerConfig, error) {
	cfg := stack.ContainerConfig{Policy: &v1.ContainerPolicy{Privileged: c.privileged, HostNetwork: c.hostNetwork}}
	for _, text := range c.mounts {
		at, readOnly := strings.CutSuffix(text, ":ro")
		if !filepath.IsAbs(at) {
			return cfg, exit.Usagef("--allow-mount %s: use an absolute path, followed by :ro for read-only", text)
		}
		cfg.Policy.Mounts = append(cfg.Policy.Mounts, &v1.MountRule{Path: filepath.Clean(at), ReadOnly: readOnly})
	}
	targets := map[string]bool{}
	for _, text := range c.standing {
		paths, readOnly := strings.CutSuffix(text, ":ro")
		from, to, _ := strings.Cut(paths, ":")
		switch info, err := os.Stat(from); {
		case !filepath.IsAbs(from) || !path.IsAbs(to) || strings.Contains(to, ":"):
			return cfg, exit.Usagef("--mount %s: use two absolute paths, as in /srv/models:/models:ro", text)
		case err != nil:
			return cfg, exit.Usagef("--mount %s: %w", text, err)
		case !info.IsDir():
			return cfg, exit.Usagef("--mount %s: %s is not a folder", text, from)
		case targets[path.Clean(to)]:
			return cfg, exit.Usagef("--mount %s: another --mount already uses %s", text, to)
		}
		targets[path.Clean(to)] = true
		cfg.Mounts = append(cfg.Mounts, &v1.Mount{HostPath: filepath.Clean(from), ContainerPath: path.Clean(to), ReadOnly: readOnly})
	}
	for _, text := range c.capabilities {
		name := policy.Capability(text)
		if !capabilityName.MatchString(name) {
			return cfg, exit.Usagef("--allow-cap %q: write the name of a Linux capability, such as NET_ADMIN, or %s", text, policy.AllCapabilities)
		}
		if !slices.Contains(cfg.Policy.Capabilities, name) {
			cfg.Policy.Capabilities = append(cfg.Policy.Capabilities, name)
		}
	}
	var err error
	if cfg.RegistryAuth, err = config.ParsePairs("registry-auth", c.auths); err != nil {
		return cfg, err
	}
	for name, file := range cfg.RegistryAuth {
		path, err := filepath.Abs(file)
		if err == nil {
			err = container.CheckAuthFile(path)
		}
		if err != nil {
			return cfg, exit.Usagef("--registry-auth %s: %w", name, err)
		}
		cfg.RegistryAuth[name] = path
	}
	return cfg, nil
}
