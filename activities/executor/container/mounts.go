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

// openMounts are the directories of a container's mounts that stay open until the engine
// has mounted them; nil: what is at the mount's path is mounted. An engine resolves a path
// again, and a container that may write to a part of it can have put a link there.
type openMounts []*os.File

func (h openMounts) close() {
	for _, dir := range h {
		if dir != nil {
			dir.Close()
		}
	}
}

// openMount mounts an open directory. The engine's own process does that, as for a volume:
// for a bind, what it runs the container by does, in a namespace of mounts in which no
// directory can be mounted that was opened in another. A volume without a name goes with
// its container.
func openMount(dir *os.File, to string, readOnly bool) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Target: to, ReadOnly: readOnly, VolumeOptions: &mount.VolumeOptions{
		NoCopy: true, Labels: map[string]string{labelMount: to},
		DriverConfig: &mount.Driver{Name: "local", Options: map[string]string{
			// Private: to unmount it unmounts nothing of the directory's own.
			"type": "none", "o": "rbind,rprivate", "device": fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), dir.Fd()),
		}},
	}}
}

// hasOpenMounts reports whether a container has a mount of openMount.
func hasOpenMounts(h *container.HostConfig) bool {
	return h != nil && slices.ContainsFunc(h.Mounts, func(m mount.Mount) bool {
		return m.VolumeOptions != nil && m.VolumeOptions.Labels[labelMount] != ""
	})
}

// checkOpenMounts holds what the engine mounts for a container that has not started to what is
// held: an engine elsewhere, or with other numbers of processes, would mount something else.
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
		// With a slash, links of the image are followed.
		seen, err := r.e.docker.ContainerStatPath(ctx, r.id, strings.TrimSuffix(m.GetContainerPath(), "/")+"/")
		if told := causeOf(ctx, err); told != nil {
			return fmt.Errorf("mount %s: the engine cannot mount a directory that this worker holds open, as it must below a rule; allow it by a rule of its own (%s): %w",
				m.GetHostPath(), r.e.mountRemedy(m.GetHostPath()), told)
		}
		after, err := dir.Stat()
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.GetHostPath(), err)
		}
		if seen.Mode != after.Mode() || seen.Mtime.Before(before.ModTime()) || seen.Mtime.After(after.ModTime()) {
			return fmt.Errorf("mount %s: the engine does not see the processes of this worker, as it must below a rule; allow it by a rule of its own (%s)",
				m.GetHostPath(), r.e.mountRemedy(m.GetHostPath()))
		}
	}
	return nil
}
