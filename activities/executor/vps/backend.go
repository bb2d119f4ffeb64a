package vps

import (
	"context"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container"
	v1 "switchyard/proto/switchyard/v1"
)

// Backend runs machines of one kind. Callers repeat Survivors until it returns no error.
type Backend interface {
	executor.Executor
	executor.Steerer
	executor.Capturer
	executor.Survivor
	// Enter and Restart are those of executor.Capabilities.
	Enter(ctx context.Context, id string) (executor.Inside, error)
	Restart(ctx context.Context, id string) error
}

// newContainers returns the backend that runs machines as containers.
func newContainers(e *container.Executor) Backend {
	return e.ForKind(container.Kind{Type: v1.TypeVPS, Plan: plan, Lasts: true})
}

// plan returns the container plan of a machine.
func plan(a executor.Attempt) (container.Plan, error) {
	spec := &v1.VpsSpec{}
	if err := container.DecodeSpec(a.Spec, spec); err != nil {
		return container.Plan{}, err
	}
	c := &v1.ContainerSpec{
		Image: spec.GetImage(), Mounts: spec.GetMounts(), User: spec.GetUser(), WorkingDirectory: spec.GetWorkingDirectory(),
		Privileged: spec.GetPrivileged(), Network: spec.GetNetwork(), Ip: spec.GetIp(), CapAdd: spec.GetCapAdd(),
		ShmSizeMb: spec.GetShmSizeMb(), Ulimits: spec.GetUlimits(), PullPolicy: spec.GetPullPolicy(),
		RegistryAuth: spec.GetRegistryAuth(), ImageTarball: spec.GetImageTarball(), Environment: spec.GetEnvironment(),
	}
	isInit := len(spec.GetInit()) > 0
	if isInit {
		c.Entrypoint = container.Words(spec.GetInit())
	}
	return container.Plan{Spec: c, Waits: !isInit, IsInit: isInit, AtHome: spec.GetWorkingDirectory() == ""}, nil
}
