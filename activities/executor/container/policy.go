package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// checkPolicy refuses what the node does not allow a container, with a *StartError that
// names it and the flag that would allow it. A mount whose source is not there is a
// fault of the node, any other error. The sources of the spec's mounts become what
// they resolve to, so that a link that changes afterwards leads nowhere else.
func (e *Executor) checkPolicy(spec *v1.ContainerSpec) error {
	if mode, _, joined := strings.Cut(spec.GetNetwork(), ":"); joined {
		return refusal(fmt.Sprintf("spec.network is %q: a container may not join what is another's by network %q", spec.GetNetwork(), mode+":"))
	}
	if r := policy.Refusals(e.opts.Policy, policy.Needs(spec)); len(r) > 0 {
		return refusal("this node does not allow " + strings.Join(r, ", nor "))
	}
	rules := resolveRules(e.opts.Policy.GetMounts())
	for _, m := range spec.GetMounts() {
		if err := e.checkMount(rules, m); err != nil {
			return err
		}
	}
	return nil
}

func refusal(text string) error {
	return cannotRun(errors.New(text))
}

// resolveRules are rules with their directories as they resolve, where they are there.
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

// checkMount holds a mount that is allowed as it is written to where it leads.
func (e *Executor) checkMount(rules []*v1.MountRule, m *v1.Mount) error {
	written := filepath.Clean(m.GetHostPath())
	at, err := filepath.EvalSymlinks(written)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("mount %s: there is no such file or directory on this node", written)
		}
		return fmt.Errorf("mount %s: %w", written, err)
	}
	needs := &v1.ContainerNeeds{Mounts: []*v1.MountRule{{Path: at, ReadOnly: m.GetReadOnly()}}}
	if r := policy.Refusals(&v1.ContainerPolicy{Mounts: rules}, needs); len(r) > 0 {
		return refusal(fmt.Sprintf("%s leads to %s, and this node does not allow %s", written, at, r[0]))
	}
	named := func(socket string) bool {
		return slices.ContainsFunc(rules, func(r *v1.MountRule) bool { return r.GetPath() == socket })
	}
	if info, err := os.Stat(at); err == nil && info.Mode().Type() == fs.ModeSocket && !named(at) {
		return refusal(fmt.Sprintf("this node does not allow mounting the socket %s without a rule of its own (switchyard worker %s %s)", written, policy.MountFlag, at))
	}
	for _, socket := range e.engineSockets() {
		if policy.Below(at, socket) && !named(socket) {
			return refusal(fmt.Sprintf("this node does not allow mounting %s, which has the container engine's socket %s in it (switchyard worker %s %s)", written, socket, policy.MountFlag, socket))
		}
	}
	m.HostPath = at
	return nil
}

// engineSockets are the sockets of engines that are there.
func (e *Executor) engineSockets() []string {
	own, isUnix := strings.CutPrefix(e.docker.DaemonHost(), "unix://")
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
