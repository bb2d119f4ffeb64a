package kubetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"switchyard/dev/kubetest/program"
	"switchyard/dev/testneeds"
)

// cniPlugins is the folder in which Debian's package containernetworking-plugins installs the plugins.
const cniPlugins = "/usr/lib/cni"

// Program returns the path of the program of dev/kubernetes. If the program was never built, it skips the test, because
// a build takes minutes. `go run ./dev/kubetest/build` builds it.
func Program(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		testneeds.Missing(t, "the Kubernetes for tests is for Linux")
	}
	path, err := program.Find(t.Context())
	if errors.Is(err, program.ErrNeverBuilt) {
		testneeds.Missing(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// needNode skips a test on a machine that cannot be a real node. A node runs containers, which takes root, containerd,
// runc, the CNI plugins and a busybox.
func needNode(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		testneeds.Missing(t, "only root can make this machine a Kubernetes node")
	}
	for _, needed := range []string{"containerd", "ctr", "runc", "ip", "busybox"} {
		if _, err := exec.LookPath(needed); err != nil {
			testneeds.Missing(t, "%s is not installed, which a Kubernetes node needs", needed)
		}
	}
	if _, err := os.Stat(filepath.Join(cniPlugins, "bridge")); err != nil {
		testneeds.Missing(t, "containernetworking-plugins is not installed, which a Kubernetes node needs: %v", err)
	}
}
