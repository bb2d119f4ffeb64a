//go:build engines

package podhelper

import (
	"os/exec"
	"testing"
)

func TestHelperIsProcessOneOfAContainer(t *testing.T) {
	namespace := []string{"--user", "--map-root-user", "--pid", "--fork", "--mount-proc"}
	cmd := helper(t, "sh", "-c", `
		(setsid sleep 1000 &)
		(sh -c 'exit 1' &)
		echo "parent $PPID"; echo a=1 > "$SWITCHYARD_OUTPUT"; kill -KILL $$`)
	cmd.Args = append(append([]string{"unshare"}, namespace...), cmd.Args...)
	var err error
	if cmd.Path, err = exec.LookPath("unshare"); err != nil {
		t.Fatal(err)
	}
	if got := run(t, cmd); got.code != 128+9 || got.stdout != "parent 1\n" || string(got.files[Output]) != "a=1\n" {
		t.Errorf("%+v", got)
	}
}
