package container

import (
	"context"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/container"
)

// engineInfo holds properties of the engine that are queried once.
type engineInfo struct {
	mu        sync.Mutex
	known     bool
	cores     int
	logDriver container.LogConfig
}

// askEngineInfo returns the number of cores of the engine's machine, and the log driver that retains the
// output of containers so that it can be read again. The engine retains all output of a container until
// the container is removed, since a reattached attempt is read from its start.
func (e *Executor) askEngineInfo(ctx context.Context) (cores int, logDriver container.LogConfig, err error) {
	f := &e.engineInfo
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known {
		info, err := e.docker.Info(ctx)
		if err != nil {
			return 0, container.LogConfig{}, err
		}
		f.known, f.cores = true, info.NCPU
		if slices.Contains(info.Plugins.Log, "local") {
			// It retains every byte unchanged. json-file, the alternative, replaces bytes that are not
			// UTF-8.
			f.logDriver = container.LogConfig{Type: "local", Config: map[string]string{"max-size": "1000g", "max-file": "1", "compress": "false"}}
		} else {
			f.logDriver = container.LogConfig{Type: "json-file"}
		}
	}
	return f.cores, f.logDriver, nil
}
