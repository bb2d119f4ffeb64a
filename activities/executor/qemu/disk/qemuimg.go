package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// program is the QEMU tool that creates and converts images.
const program = "qemu-img"

// Bounds for a call of qemu-img.
const (
	// memoryLimit bounds the address space. 512 MiB suffice for disks of several TiB.
	memoryLimit = 2 << 30
	// shortCall bounds calls that read and write little.
	shortCall = 30 * time.Second
	// killDelay is how long a call may keep its output open after it is killed.
	killDelay = 5 * time.Second
	// outputLimit bounds how much output is kept. An image can have thousands of snapshots.
	outputLimit = 1 << 20
)

// ErrNoProgram reports that the node has no qemu-img.
var ErrNoProgram = errors.New("qemu-img is not installed on the node; on Debian: apt install qemu-utils")

// limited sets shell limits that the program inherits: the address space in KiB, and the size of a written file in
// units of 512 bytes. A shell that lacks a limit, or already has a lower one, continues without it.
const limited = `ulimit -c 0; ulimit -v "$1"; ulimit -f "$2"; shift 2; exec "$@"`

// run runs qemu-img, which may write files of up to maxFile bytes, and returns its output.
func run(ctx context.Context, limit time.Duration, maxFile int64, args ...string) ([]byte, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, ErrNoProgram
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	const sector = 512
	limits := []string{"-c", limited, program, fmt.Sprint(memoryLimit >> 10), fmt.Sprint((maxFile + sector - 1) / sector), path}
	cmd := exec.CommandContext(ctx, "sh", append(limits, args...)...)
	var out, problems boundedBuffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &problems, killDelay
	switch err := cmd.Run(); {
	case err == nil:
		return out.Bytes(), nil
	case parent.Err() != nil:
		return nil, context.Cause(parent)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s %s did not finish within %v", program, args[0], limit)
	default:
		text := strings.TrimSpace(strings.ReplaceAll(problems.String(), program+": ", ""))
		return nil, fmt.Errorf("%s %s: %w: %s", program, args[0], err, text)
	}
}

// boundedBuffer keeps the first outputLimit bytes written to it and discards the rest.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), max(0, outputLimit-b.Len()))]
	_, _ = b.Buffer.Write(kept)
	return len(p), nil
}
