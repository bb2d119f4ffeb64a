package cli

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// resourceFlags holds the flags for the resources that a task needs on its node.
type resourceFlags struct {
	cores  float64
	memory string
	gpus   float64
}

func (r *resourceFlags) add(f *pflag.FlagSet) {
	f.Float64Var(&r.cores, "cores", 0, "cores to reserve on its node")
	f.StringVar(&r.memory, "memory", "", "memory to reserve on its node, such as 512M or 8G")
	f.Float64Var(&r.gpus, "gpus", 0, "GPUs to reserve on its node: a whole number, or a part of one, such as 0.5")
}

// resources returns the resources that the flags ask for, or nil if they ask for none.
func (r *resourceFlags) resources() (*v1.Resources, error) {
	memory, err := parseMemory(r.memory)
	switch {
	case err != nil:
		return nil, err
	case r.cores < 0 || r.gpus < 0:
		return nil, exit.Usagef("--cores and --gpus must not be negative")
	case r.cores == 0 && memory == 0 && r.gpus == 0:
		return nil, nil
	}
	res := &v1.Resources{MemoryMb: memory, Gpus: r.gpus}
	if r.cores > 0 {
		res.Cores = proto.Float64(r.cores)
	}
	return res, nil
}

// memorySize matches an amount of memory.
var memorySize = regexp.MustCompile(`^([1-9][0-9]{0,8})(M|G|T|Mi|Gi|Ti)$`)

// parseMemory returns an amount of memory in MiB, or 0 for "".
func parseMemory(text string) (int32, error) {
	if text == "" {
		return 0, nil
	}
	parts := memorySize.FindStringSubmatch(text)
	if parts == nil {
		return 0, exit.Usagef("--memory %q: write a number with its unit, such as 512M or 8G", text)
	}
	amount, err := strconv.ParseInt(parts[1], 10, 64)
	for range map[byte]int{'M': 0, 'G': 1, 'T': 2}[parts[2][0]] {
		amount *= 1024
	}
	if err != nil || amount > 1<<31-1 {
		return 0, exit.Usagef("--memory %s is more than any node has", text)
	}
	return int32(amount), nil
}

// parseMounts parses directories of a node with their places in a container, as HOST:PATH or HOST:PATH:ro.
func parseMounts(texts []string) ([]*v1.Mount, error) {
	var mounts []*v1.Mount
	for _, text := range texts {
		paths, readOnly := strings.CutSuffix(text, ":ro")
		from, to, _ := strings.Cut(paths, ":")
		if !path.IsAbs(from) || !path.IsAbs(to) || strings.Contains(to, ":") {
			return nil, exit.Usagef("--mount %s: use two absolute paths, as in /srv/models:/models:ro", text)
		}
		mounts = append(mounts, &v1.Mount{HostPath: from, ContainerPath: to, ReadOnly: readOnly})
	}
	return mounts, nil
}
