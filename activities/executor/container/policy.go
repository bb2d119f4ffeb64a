package container

import (
	"errors"
	"fmt"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// checkPolicy returns a *StartError for anything in the spec that the node does not allow, naming
// the flag that would allow it. A mount whose source does not exist is a fault of the node and
// yields another error. checkPolicy replaces the sources of the spec's mounts with their resolved
// paths. The caller closes the returned directories.
func (e *Executor) checkPolicy(spec *v1.ContainerSpec) (_ openMounts, err error) {
	if mode, _, joined := strings.Cut(spec.GetNetwork(), ":"); joined {
		return nil, refusal(fmt.Sprintf("spec.network is %q, but a container may not join an existing network namespace with %q", spec.GetNetwork(), mode+":"))
	}
	if r := policy.Refusals(e.opts.Policy, policy.Needs(spec)); len(r) > 0 {
		return nil, refusal("this node does not allow " + strings.Join(r, ", nor "))
	}
	held := make(openMounts, len(spec.GetMounts()))
	defer func() {
		if err != nil {
			held.close()
		}
	}()
	for i, m := range spec.GetMounts() {
		if held[i], err = e.mounts.checkMount(m); err != nil {
			return nil, err
		}
	}
	return held, nil
}

func refusal(text string) error {
	return errCannotRun(errors.New(text))
}
