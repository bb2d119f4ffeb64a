package container

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/versions"

	"switchyard/activities/executor"
)

// sizeOf returns a size in the engine's order, rows and columns. A size of zero becomes 24 by 80.
func sizeOf(size executor.WindowSize) [2]uint {
	if size.Rows == 0 || size.Columns == 0 {
		return [2]uint{24, 80}
	}
	return [2]uint{uint(size.Rows), uint(size.Columns)}
}

// hasConsoleSize reports whether the engine can create a terminal with a size.
func (e *shared) hasConsoleSize() bool {
	return versions.GreaterThanOrEqualTo(e.docker.ClientVersion(), "1.42")
}

// sizeWait is a script that waits until the terminal has the size in its first argument, for about ten seconds at
// most, and then executes the other arguments. busybox reports a terminal without a size as 24 by 80, and a user may change the size meanwhile.
const sizeWait = `want=$1

shift
if command -v stty >/dev/null; then
	i=0
	while [ $i -lt 1000 ]; do
		size=$(stty size 2>/dev/null)
		[ "$size" = "$want" ] && break
		case $size in "" | "0 0" | "24 80") ;; *) break ;; esac
		sleep 0.01
		i=$((i + 1))
	done
fi
exec "$@"`

// awaitSize wraps a command so that it starts once its terminal has its size, if the container has a shell.
func (i *entered) awaitSize(ctx context.Context, size executor.WindowSize, command []string) []string {
	const shell = "/bin/sh"
	if err, sure := i.r.e.commandChecks.checkRunnable(ctx, i.r.id, shell, shell); err != nil || !sure {
		return command
	}
	want := sizeOf(size)
	return append([]string{shell, "-c", sizeWait, "sh", fmt.Sprintf("%d %d", want[0], want[1])}, command...)
}

// resize sets the size of a command's terminal, and forwards later sizes.
func (x *execution) resize(ctx context.Context) {
	terminal := x.command.Terminal
	if terminal == nil {
		return
	}
	x.setSize(ctx, sizeOf(terminal.Size))
	for {
		select {
		case size, ok := <-terminal.Resizes:
			if !ok {
				return
			}
			x.setSize(ctx, sizeOf(size))
		case <-ctx.Done():
			return
		}
	}
}

// setSize sets the size of a terminal. It tries again while the engine refuses because the command is starting.
func (x *execution) setSize(ctx context.Context, size [2]uint) {
	for pause := time.Millisecond; ; pause = min(2*pause, pingAgain) {
		call, cancel := context.WithTimeout(ctx, pingPatience)
		err := x.r.e.docker.ContainerExecResize(call, x.id, container.ResizeOptions{Height: size[0], Width: size[1]})
		cancel()
		if err == nil {
			return
		}
		select {
		case <-x.ended:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
