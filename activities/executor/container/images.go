package container

import (
	"context"

	v1 "switchyard/proto/switchyard/v1"
)

// ensureImage sees to it that the engine has the image that a spec names and returns
// its content address. notify is told of the progress, a line each.
func (e *Executor) ensureImage(ctx context.Context, spec *v1.ContainerSpec, notify func(string)) (id string, err error) {
	image, err := e.docker.ImageInspect(ctx, spec.GetImage())
	return image.ID, err
}
