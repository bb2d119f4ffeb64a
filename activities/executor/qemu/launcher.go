package qemu

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// maxConsole bounds the console file, in bytes.
const maxConsole = 64 << 20

// launcher starts QEMU in the folder of its machine and outlives the worker together with QEMU. A pipe carries the
// output of QEMU and the machine to the console file until the file holds $1 bytes. The rest is discarded, so that a
// machine cannot fill the disk of the node. dd writes each read at once but counts a short read as a block, so it is
// restarted until the file is full. The exit code is written after all of that.
const launcher = `umask 077
limit=$1
shift
{
	"$@" </dev/null &
	echo $! >pid.new && mv pid.new pid
	wait $!
	echo $? >exit.new
} 2>&1 | {
	: >>console
	size=$(wc -c <console)
	while [ "$size" -lt "$limit" ]; do
		block=$((limit - size))
		[ "$block" -le 4096 ] || block=4096
		dd bs="$block" count=$(((limit - size) / block)) >>console 2>/dev/null
		before=$size
		size=$(wc -c <console)
		[ "$size" -gt "$before" ] || break
	done
	exec cat >/dev/null
}
mv exit.new exit
`

// startLauncher starts QEMU through the launcher and returns the launcher's process.
func startLauncher(f folder, args []string, group *group) (*exec.Cmd, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", launcher, "sh", strconv.Itoa(maxConsole)}, args...)...)
	cmd.Dir = string(f)
	// QEMU gets none of the worker's variables, which may hold secrets.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + string(f), "TMPDIR=" + string(f)}
	cmd.SysProcAttr = group.attributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start QEMU: %w", err)
	}
	return cmd, nil
}
