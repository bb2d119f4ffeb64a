package container

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// openMounts holds the directories of a container's mounts that stay open until the engine has
// mounted them. A nil entry is mounted by its path. An engine resolves the path again, and a
// container that may write to a directory above could have placed a link there.
type openMounts []*os.File

func (h openMounts) close() {
	for _, dir := range h {
		if dir != nil {
			dir.Close()
		}
	}
}

// openMount returns a mount of an open directory, as a volume. For a volume the engine's own
// process mounts the directory. For a bind mount the container runtime does so, in a mount
// namespace in which directories opened in another namespace cannot be mounted. An anonymous volume
// is removed with its container.
func openMount(dir *os.File, to string, readOnly bool) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Target: to, ReadOnly: readOnly, VolumeOptions: &mount.VolumeOptions{
		NoCopy: true, Labels: map[string]string{labelMount: to},
		DriverConfig: &mount.Driver{Name: "local", Options: map[string]string{
			// Private: unmounting it does not unmount anything of the directory's own.
			"type": "none", "o": "rbind,rprivate", "device": fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), dir.Fd()),
		}},
	}}
}

// hasOpenMounts reports whether a container has a mount from openMount.
func hasOpenMounts(h *container.HostConfig) bool {
	return h != nil && slices.ContainsFunc(h.Mounts, func(m mount.Mount) bool {
		return m.VolumeOptions != nil && m.VolumeOptions.Labels[labelMount] != ""
	})
}

// checkOpenMounts checks that a container which has not started would mount the directories that
// this process holds open. An engine on another machine, or with another PID namespace, would mount
// something else.
func (r *running) checkOpenMounts(ctx context.Context, req request) error {
	for i, dir := range req.held {
		if dir == nil {
			continue
		}
		m := req.spec.GetMounts()[i]
		before, err := dir.Stat()
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.GetHostPath(), err)
		}
		// A trailing slash makes the engine follow links of the image.
		seen, err := r.e.docker.ContainerStatPath(ctx, r.id, strings.TrimSuffix(m.GetContainerPath(), "/")+"/")
		if told := causeOf(ctx, err); told != nil {
			return fmt.Errorf("mount %s: directories below a mount rule are mounted through a descriptor of the worker, which the engine cannot open; allow this directory with a rule of its own (%s): %w",
				m.GetHostPath(), r.e.mounts.mountRemedy(m.GetHostPath()), told)
		}
		after, err := dir.Stat()
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.GetHostPath(), err)
		}
		if seen.Mode != after.Mode() || seen.Mtime.Before(before.ModTime()) || seen.Mtime.After(after.ModTime()) {
			return fmt.Errorf("mount %s: the engine cannot see this worker's processes, which mounts below a rule need; allow this directory with a rule of its own (%s)",
				m.GetHostPath(), r.e.mounts.mountRemedy(m.GetHostPath()))
		}
	}
	return nil
}
