package container

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/versions"

	"switchyard/activities/executor"
)

// sizeOf returns a size as the engine takes it: rows and columns. A terminal of no size has the usual one.
func sizeOf(size executor.WindowSize) [2]uint {
	if size.Rows == 0 || size.Columns == 0 {
		return [2]uint{24, 80}
	}
	return [2]uint{uint(size.Rows), uint(size.Columns)}
}

// hasConsoleSize reports whether the engine gives a terminal its size from the start.
func (e *shared) hasConsoleSize() bool {
	return versions.GreaterThanOrEqualTo(e.docker.ClientVersion(), "1.42")
}

// sizeWait waits until the terminal has the size of its first argument, for a second at most, and then runs the others. A terminal
// without a size has 24 rows and 80 columns by the word of busybox, and a user may change the size meanwhile.
const sizeWait = `want=$1
shift
if command -v stty >/dev/null; then
	i=0
	while [ $i -lt 100 ]; do
		size=$(stty size 2>/dev/null)
		[ "$size" = "$want" ] && break
		case $size in "" | "0 0" | "24 80") ;; *) break ;; esac
		sleep 0.01
		i=$((i + 1))
	done
fi
exec "$@"`

// awaitSize has a command start when its terminal has its size, if there is a shell for it.
func (i *entered) awaitSize(ctx context.Context, size executor.WindowSize, command []string) []string {
	const shell = "/bin/sh"
	if err, sure := i.r.e.runnable(ctx, i.r.id, shell, shell); err != nil || !sure {
		return command
	}
	want := sizeOf(size)
	return append([]string{shell, "-c", sizeWait, "sh", fmt.Sprintf("%d %d", want[0], want[1])}, command...)
}

// resize gives the terminal of a command its size, and those that follow.
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

// setSize sets the size of a terminal. The engine refuses that while the command starts.
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
