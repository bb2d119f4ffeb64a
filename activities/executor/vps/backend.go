package vps

import (
	"context"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container"
	v1 "switchyard/proto/switchyard/v1"
)

// Backend runs machines of one kind. Callers repeat Survivors until it returns no error.
type Backend interface {
	executor.Lasting
	executor.Steerer
	executor.Enterer
	executor.Available
}

// containers runs machines as containers.
type containers struct{ *container.Executor }

func newContainers(e *container.Executor) containers {
	return containers{e.ForKind(container.Kind{Type: v1.TypeVPS, Plan: plan, Lasts: true})}
}

// Stop shuts a machine down gracefully at a user's request.
func (c containers) Stop(ctx context.Context, id string) error { return c.Halt(ctx, id) }

// Restart stops a machine and starts it again with its disk.
func (c containers) Restart(ctx context.Context, id string) error { return c.Reboot(ctx, id) }

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
