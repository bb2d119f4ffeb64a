package container

import (
	"context"
	"fmt"
	"io"
	"path"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor"
)

// readArchive writes files of the container to an archive, using the engine's own call. The engine reads
// them as root.
func (i *entered) readArchive(ctx context.Context, who, at string, to io.Writer) error {
	if err := i.checkIsRoot(who); err != nil {
		return err
	}
	archive, _, err := i.r.e.docker.CopyFromContainer(ctx, i.r.id, i.absolute(at))
	if err != nil {
		return i.archiveError(at, err)
	}
	defer archive.Close()
	_, err = io.Copy(to, archive)
	return err
}

// writeArchive unpacks an archive into a directory of the container, using the engine's own call.
func (i *entered) writeArchive(ctx context.Context, who, at string, from io.Reader) error {
	if err := i.checkIsRoot(who); err != nil {
		return err
	}
	if err := i.r.e.docker.CopyToContainer(ctx, i.r.id, i.absolute(at), from, container.CopyToContainerOptions{}); err != nil {
		return i.archiveError(at, err)
	}
	return nil
}

// checkIsRoot returns an error unless the user is root, since the engine reads and writes archives as root.
func (i *entered) checkIsRoot(who string) error {
	switch i.userOf(who) {
	case "0", "root", "0:0", "root:root":
		return nil
	}
	return errElsewhere("its files can only be copied as root")
}

func (i *entered) absolute(at string) string {
	if path.IsAbs(at) {
		return at
	}
	return path.Join("/", i.r.main.containerConfig().WorkingDir, at)
}

func (i *entered) archiveError(at string, err error) error {
	if cerrdefs.IsNotFound(err) || cerrdefs.IsInvalidArgument(err) || cerrdefs.IsPermissionDenied(err) {
		return &executor.Refusal{Text: fmt.Sprintf("%s: %s", at, engineMessage(err))}
	}
	return fmt.Errorf("copy files of container %s: %w", i.r.name, err)
}
