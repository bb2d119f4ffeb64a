package container

import (
	"context"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/container"
)

// engineInfo are what an engine says of itself; they are asked for once.
type engineInfo struct {
	mu        sync.Mutex
	known     bool
	cores     int
	logDriver container.LogConfig
}

// askEngineInfo returns how many cores the engine's machine has, and the driver that keeps the
// output of containers so that it can be read again. What a container has printed stays
// with the engine until it is removed, all of it: an attempt that is reattached is read
// from its start.
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
			// It keeps every byte as it is; json-file, what others have, replaces those that are no UTF-8.
			f.logDriver = container.LogConfig{Type: "local", Config: map[string]string{"max-size": "1000g", "max-file": "1", "compress": "false"}}
		} else {
			f.logDriver = container.LogConfig{Type: "json-file"}
		}
	}
	return f.cores, f.logDriver, nil
}
