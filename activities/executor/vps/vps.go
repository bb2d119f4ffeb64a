package vps

import (
	"context"
	"errors"
	"fmt"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container"
	v1 "switchyard/proto/switchyard/v1"
)

// Executor runs tasks of type "vps". One is enough for all nodes of a process.
type Executor struct{ *container.Executor }

var (
	_ executor.Lasting   = (*Executor)(nil)
	_ executor.Steerer   = (*Executor)(nil)
	_ executor.Available = (*Executor)(nil)
	_ executor.Enterer   = (*Executor)(nil)
)

// New returns an Executor that shares the engine of containers, and ends with it.
func New(containers *container.Executor) *Executor {
	return &Executor{containers.ForKind(container.Kind{Type: v1.TypeVPS, Plan: plan, Lasts: true})}
}

// Stop ends a machine gracefully, as asked.
func (e *Executor) Stop(ctx context.Context, id string) error { return e.Halt(ctx, id) }

// Restart stops a machine and starts it again with its disk.
func (e *Executor) Restart(ctx context.Context, id string) error { return e.Reboot(ctx, id) }

// Close does nothing: the executor of containers has what is to be closed.
func (*Executor) Close() error { return nil }

// Backends of a spec; the empty one is backendDocker.
const (
	backendDocker = "docker"
	backendQEMU   = "qemu"
)

// plan returns the container of a machine.
func plan(a executor.Attempt) (container.Plan, error) {
	spec := &v1.VpsSpec{}
	if err := container.DecodeSpec(a.Spec, spec); err != nil {
		return container.Plan{}, err
	}
	switch spec.GetBackend() {
	case "", backendDocker:
	case backendQEMU:
		return container.Plan{}, errors.New(`backend "qemu" is not supported yet; use "docker", which makes a container`)
	default:
		return container.Plan{}, fmt.Errorf("backend %q is unknown; use %q", spec.GetBackend(), backendDocker)
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
