package container

import (
	"context"
	"errors"

	"github.com/docker/docker/client"
)

// ErrNoEngine means that this machine has no container engine.
var ErrNoEngine = errors.New("no container engine is installed")

// ProbeEngine returns the address and the version of the engine that an Executor would use. It returns ErrNoEngine if there is
// none.
func ProbeEngine(ctx context.Context) (host, version string, err error) {
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return "", "", err
	}
	defer docker.Close()
	host = docker.DaemonHost()
	if !isInstalled(docker) {
		return host, "", ErrNoEngine
	}
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	about, err := docker.ServerVersion(ctx)
	if err != nil && ctx.Err() != nil {
		err = silentEngine(docker)
	}
	return host, about.Version, err
}
