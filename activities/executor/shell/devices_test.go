//go:build unix

package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

func TestTaskSeesOnlyItsGPUs(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "CUDA_VISIBLE_DEVICES=7"}})
	own := map[string]string{"CUDA_VISIBLE_DEVICES": "0,1,2,3"}
	for name, test := range map[string]struct {
		gpus []string
		env  map[string]string
		want string
	}{
		"two":                             {gpus: []string{"0", "3"}, want: "0,3 PCI_BUS_ID"},
		"two, but the task wants more":    {gpus: []string{"2", "3"}, env: own, want: "2,3 PCI_BUS_ID"},
		"a MIG device":                    {gpus: []string{"MIG-a"}, want: "MIG-a PCI_BUS_ID"},
		"none of those that there are":    {gpus: []string{}, want: " PCI_BUS_ID"},
		"none, but the task wants some":   {gpus: []string{}, env: own, want: " PCI_BUS_ID"},
		"nothing is said":                 {want: "7 unset"},
		"nothing is said but by the task": {env: own, want: "0,1,2,3 unset"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := executor.Attempt{
				ID: idPrefix + "/gpus/c1", Env: test.env, Binding: executor.Binding{GPUs: test.gpus}, Streams: executor.Streams{Stdout: &out}, Ending: executor.Ending{Grace: time.Second},
				Spec: spec(t, map[string]any{"command": `echo "$CUDA_VISIBLE_DEVICES ${CUDA_DEVICE_ORDER-unset}"`}),
			}
			if _, err := e.Run(t.Context(), a, func() {}); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(out.String(), "\n"); got != test.want {
				t.Errorf("the program sees %q, want %q", got, test.want)
			}
			if _, changed := own["CUDA_DEVICE_ORDER"]; changed {
				t.Error("the task's own environment was changed")
			}
		})
	}
}

// TestPartOfAGPULimitsTheProgram checks the variables of the Multi-Process Service, which runs if the directory of its pipes
// exists.
func TestPartOfAGPULimitsTheProgram(t *testing.T) {
	t.Parallel()
	pipes := t.TempDir()
	for name, test := range map[string]struct {
		pipes string
		part  *v1.GpuPart
		want  string
	}{
		"share":                    {pipes, &v1.GpuPart{Thousandths: 333}, "33 - " + pipes},
		"small share":              {pipes, &v1.GpuPart{Thousandths: 1}, "1 - " + pipes},
		"memory":                   {pipes, &v1.GpuPart{MemoryMb: 20_000}, "- 0=20000M " + pipes},
		"both":                     {pipes, &v1.GpuPart{Thousandths: 500, MemoryMb: 20_000}, "50 0=20000M " + pipes},
		"whole":                    {pipes, nil, "- - -"},
		"no Multi-Process Service": {pipes + "/none", &v1.GpuPart{Thousandths: 500, MemoryMb: 20_000}, "- - -"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecutor(t, Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "CUDA_MPS_PIPE_DIRECTORY=" + test.pipes}})
			var out bytes.Buffer
			a := executor.Attempt{
				ID: idPrefix + "/part/c1", Binding: executor.Binding{GPUs: []string{"0"}, GPUPart: test.part}, Streams: executor.Streams{Stdout: &out}, Ending: executor.Ending{Grace: time.Second},
				Spec: spec(t, map[string]any{"command": `echo "${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE--} ${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT--} ${CUDA_MPS_PIPE_DIRECTORY--}"`}),
			}
			if _, err := e.Run(t.Context(), a, func() {}); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(out.String(), "\n"); got != test.want {
				t.Errorf("the program sees %q, want %q", got, test.want)
			}
		})
	}
}

// fakeNumactl prints its options and then executes the program, like numactl.
const fakeNumactl = `#!/bin/sh
echo "$1 $2 $3"
shift 3
exec "$@"
`

func TestProgramIsBoundToItsNUMANode(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "numactl"), []byte(fakeNumactl), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "data"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	with := newExecutor(t, Options{Environ: []string{"PATH=" + bin + ":/usr/bin:/bin"}})
	without := newExecutor(t, Options{Environ: []string{"PATH=" + t.TempDir()}})
	const bound = "--cpunodebind=1 --membind=1 --\n"
	for name, test := range map[string]struct {
		executor *Executor
		command  any
		out, err string
		code     int
		optional bool
	}{
		"a line":                                {with, "echo $0 and more", bound + "/bin/sh and more\n", "", 0, false},
		"words":                                 {with, []any{"echo", "--membind=7", "b c"}, bound + "--membind=7 b c\n", "", 0, false},
		"exit code":                             {with, "exit 3", bound, "", 3, false},
		"a path from the folder":                {with, []any{"./numactl", "1", "2", "3", "true"}, bound + "1 2 3\n", "", 0, false},
		"no such program":                       {with, []any{"switchyard-no-such-program"}, "", "switchyard-no-such-program: command not found", 127, false},
		"no such path":                          {with, []any{"./nope"}, "", "./nope: no such file or directory", 127, false},
		"a file":                                {with, []any{"./data"}, "", "./data: permission denied", 126, false},
		"numactl is not there":                  {without, "true", "", "numactl is not installed on node n-1; install it there, or do not bind the task to a NUMA node", 127, false},
		"numactl is not there, and need not be": {without, "echo $0", "sh\n", "", 0, true},
		"optional":                              {with, "echo $0", bound + "/bin/sh\n", "", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := executor.Attempt{
				ID: idPrefix + "/numa/c1", Dirs: executor.Dirs{Base: bin}, Streams: executor.Streams{Stdout: &out}, Ending: executor.Ending{Grace: time.Second}, Binding: executor.Binding{NUMANode: new(int32(1)), NUMAOptional: test.optional},
				Env: map[string]string{"SWITCHYARD_NODE": "n-1"}, Spec: spec(t, map[string]any{"command": test.command}),
			}
			r, err := test.executor.Run(t.Context(), a, func() {})
			if test.err != "" {
				start := executor.AsStartError(err)
				if start == nil || start.Error() != test.err || start.ExitCode != test.code {
					t.Fatalf("error %v, want %q with exit code %d", err, test.err, test.code)
				}
				return
			}
			if err != nil || r.ExitCode != test.code {
				t.Fatalf("result %+v, error %v", r, err)
			}
			if got := strings.ReplaceAll(out.String(), "/usr/bin/sh", "/bin/sh"); got != test.out {
				t.Errorf("printed %q, want %q", got, test.out)
			}
		})
	}
}
