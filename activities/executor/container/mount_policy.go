package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// mountPolicy decides which directories of the node a container may mount.
type mountPolicy struct {
	policy     *v1.ContainerPolicy
	rules      []*v1.MountRule // rules of the policy, with their paths resolved
	engineHost string          // address of the engine
}

// resolveRules returns the rules with the links in their paths resolved, where the paths
// exist. Rules are resolved only once: a container with write access above a rule's
// directory could replace the directory with a link.
func resolveRules(rules []*v1.MountRule) []*v1.MountRule {
	resolved := make([]*v1.MountRule, 0, len(rules))
	for _, r := range rules {
		at, err := filepath.EvalSymlinks(r.GetPath())
		if err != nil {
			at = r.GetPath()
		}
		resolved = append(resolved, &v1.MountRule{Path: at, ReadOnly: r.GetReadOnly()})
	}
	return resolved
}

// checkMount checks a mount against the rules by its resolved path. It returns the open
// directory if a container could replace it before the engine mounts it, and nil
// otherwise.
func (p *mountPolicy) checkMount(m *v1.Mount) (_ *os.File, err error) {
	written := filepath.Clean(m.GetHostPath())
	dir, at, err := openSource(written)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("mount %s: no such file or directory on this node", written)
		}
		return nil, fmt.Errorf("mount %s: %w", written, err)
	}
	keep := false
	defer func() {
		if !keep {
			dir.Close()
		}
	}()
	needs := &historyv1.ContainerNeeds{Mounts: []*v1.MountRule{{Path: at, ReadOnly: m.GetReadOnly()}}}
	if r := policy.Refusals(&v1.ContainerPolicy{Mounts: p.rules, Command: p.policy.GetCommand()}, needs); len(r) > 0 {
		return nil, refusal(fmt.Sprintf("%s resolves to %s, and this node does not allow %s", written, at, r[0]))
	}
	info, err := dir.Stat()
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", written, err)
	}
	if info.Mode().Type() == fs.ModeSocket && !p.isNamed(at) {
		return nil, refusal(fmt.Sprintf("this node does not allow mounting the socket %s without a rule of its own (%s)", written, p.mountRemedy(at)))
	}
	for _, socket := range p.engineSockets() {
		if policy.Below(at, socket) && !p.isNamed(socket) {
			return nil, refusal(fmt.Sprintf("this node does not allow mounting %s, which contains the container engine's socket %s (%s)", written, socket, p.mountRemedy(socket)))
		}
	}
	m.HostPath = at
	switch {
	case p.isNamed(at) && !p.isExchangeable(at):
		return nil, nil
	case !info.IsDir() && p.isNamed(at):
		return nil, refusal(fmt.Sprintf("%s is a file in a directory that containers may write to, so they could replace it; mount the directory, or move the file elsewhere", written))
	case !info.IsDir():
		return nil, refusal(fmt.Sprintf("%s is not a directory; this node mounts single files only with a rule of their own (%s)", written, p.mountRemedy(at)))
	}
	keep = true
	return dir, nil
}

// mountRemedy returns the command that allows mounting a path.
func (p *mountPolicy) mountRemedy(at string) string {
	return policy.Remedy(p.policy, policy.MountFlag+" "+at)
}

// isNamed reports whether a path has a rule of its own.
func (p *mountPolicy) isNamed(at string) bool {
	return slices.ContainsFunc(p.rules, func(r *v1.MountRule) bool { return r.GetPath() == at })
}

// isExchangeable reports whether a container may write to a directory above a path. A
// rule for the root directory does not count, since its containers can write everywhere
// in any case.
func (p *mountPolicy) isExchangeable(at string) bool {
	return slices.ContainsFunc(p.rules, func(r *v1.MountRule) bool {
		return !r.GetReadOnly() && r.GetPath() != "/" && policy.Below(r.GetPath(), at)
	})
}

// engineSockets returns the sockets of engines that exist on this machine.
func (p *mountPolicy) engineSockets() []string {
	own, isUnix := strings.CutPrefix(p.engineHost, "unix://")
	candidates := policy.Sockets()
	if isUnix {
		candidates = append(candidates, own)
	}
	var there []string
	for _, socket := range candidates {
		if at, err := filepath.EvalSymlinks(socket); err == nil && !slices.Contains(there, at) {
			there = append(there, at)
		}
	}
	return there
}
