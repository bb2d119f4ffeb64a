package container

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-units"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/interpreter"
)

// Paths inside a container of the directories that the node provides to the task.
const (
	// WorkspaceDir is the attempt's private directory.
	WorkspaceDir = "/switchyard"
	tempIn       = "/local_temp"
	filesIn      = WorkspaceDir + "/files" // also of a directory that is not in the workspace
	sharedIn     = "/shared"
)

// request holds everything that determines the container of an attempt.
type request struct {
	kind    Kind
	spec    *v1.ContainerSpec
	attempt executor.Attempt
	// isInit and atHome have the meaning of Plan.IsInit and Plan.AtHome.
	isInit, atHome bool
	held           openMounts
	// standing are the mounts that every container of the node gets.
	standing []*v1.Mount
	// image is the content address of the spec's image. ip is the address in its network, or "" for
	// any.
	image, ip string
	// numa restricts the processors and the memory, or is nil for no restriction.
	numa *numaSet
	// cores is the number of cores of the engine's machine; 0 means unknown.
	cores int
	// waitProgram is copied into the container, or is nil if the container has a program of its
	// own.
	waitProgram []byte
	// logDriver retains the output so that it can be read again.
	logDriver container.LogConfig
}

// made is the configuration of a container in the engine's types.
type made struct {
	config   *container.Config
	host     *container.HostConfig
	networks *network.NetworkingConfig
	// program runs a command that is a text.
	program interpreter.Program
}

// argumentBytes returns the size of the arguments and the variables, without those of the image.
func (m made) argumentBytes() (size int) {
	for _, text := range slices.Concat(m.config.Entrypoint, m.config.Cmd, m.config.Env) {
		size += len(text) + 1
	}
	return size
}

// convert returns the configuration of a request's container.
func convert(r request) (made, error) {
	spec, a := r.spec, r.attempt
	cmd, err := commandOf(spec)
	if err != nil {
		return made{}, err
	}
	env, err := environment(a)
	if err != nil {
		return made{}, err
	}
	marks := labels(a)
	marks[labelType], marks[labelImage], marks[labelKeep] = r.kind.Type, r.image, spec.GetKeep()
	if r.atHome {
		marks[labelAtHome] = "yes"
	}
	maps.Copy(marks, spec.GetLabels())
	initProcess := !r.isInit
	// An engine that shuts down ends its containers with this signal, whatever the image says.
	stopSignal := a.Signal
	if stopSignal == "" && !r.isInit { // "" means the image's signal: some programs do not treat SIGTERM as a request to end
		stopSignal = nameOf(syscall.SIGTERM)
	}
	m := made{
		program: cmd.program,
		config: &container.Config{
			Image: spec.GetImage(), Entrypoint: cmd.entrypoint, Cmd: cmd.arguments,
			Env: env, User: spec.GetUser(), WorkingDir: cmp.Or(spec.GetWorkingDirectory(), pathIn(a.Dirs.Files, a)), Labels: marks, StopSignal: stopSignal,
		},
		host: &container.HostConfig{
			Init: &initProcess, Privileged: spec.GetPrivileged(), CapAdd: spec.GetCapAdd(), LogConfig: r.logDriver,
			NetworkMode: container.NetworkMode(spec.GetNetwork()), ShmSize: int64(spec.GetShmSizeMb()) << 20,
			Mounts: mounts(r), Resources: resources(r),
		},
	}
	if r.ip != "" {
		ip, err := netip.ParseAddr(r.ip)
		if err != nil {
			return made{}, fmt.Errorf("ip: %w", err)
		}
		address := &network.EndpointIPAMConfig{IPv4Address: r.ip}
		if !ip.Is4() {
			address = &network.EndpointIPAMConfig{IPv6Address: r.ip}
		}
		m.networks = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			spec.GetNetwork(): {IPAMConfig: address},
		}}
	}
	return m, nil
}

// resources returns the limits and the devices of a container.
func resources(r request) container.Resources {
	limits := r.attempt.Limits
	res := container.Resources{}
	if limits.Cores > 0 {
		cores := limits.Cores
		if r.cores > 0 {
			cores = min(cores, float64(r.cores)) // the engine refuses more
		}
		res.NanoCPUs = int64(cores * 1e9)
	}
	if limits.Memory > 0 {
		res.Memory, res.MemorySwap = limits.Memory, limits.Memory // no swap in addition
	}
	if limits.Processes > 0 {
		res.PidsLimit = &limits.Processes
	}
	if r.numa != nil {
		res.CpusetCpus, res.CpusetMems = r.numa.cpus, r.numa.mems
	}
	for _, u := range r.spec.GetUlimits() {
		hard := int64(u.GetHard())
		if hard == 0 {
			hard = int64(u.GetSoft())
		}
		res.Ulimits = append(res.Ulimits, &units.Ulimit{Name: u.GetName(), Soft: int64(u.GetSoft()), Hard: hard})
	}
	if gpus := r.attempt.Binding.GPUs; len(gpus) > 0 {
		res.DeviceRequests = []container.DeviceRequest{{Driver: "nvidia", DeviceIDs: gpus, Capabilities: [][]string{{"gpu"}}}}
	}
	return res
}

// mounts returns the directories of the node that a container sees.
func mounts(r request) []mount.Mount {
	a := r.attempt
	var all []mount.Mount
	add := func(from, to string, readOnly bool) {
		all = append(all, mount.Mount{Type: mount.TypeBind, Source: from, Target: to, ReadOnly: readOnly})
	}
	if a.Dirs.Workspace != "" {
		add(a.Dirs.Workspace, WorkspaceDir, false)
	}
	if a.Dirs.Temp != "" {
		add(a.Dirs.Temp, tempIn, false)
	}
	if a.Dirs.Files != "" && pathIn(a.Dirs.Files, a) == filesIn {
		add(a.Dirs.Files, filesIn, false)
	}
	if a.Dirs.Shared != "" {
		add(a.Dirs.Shared, sharedIn, false)
	}
	for i, m := range r.spec.GetMounts() {
		if i < len(r.held) && r.held[i] != nil {
			all = append(all, openMount(r.held[i], m.GetContainerPath(), m.GetReadOnly()))
			continue
		}
		add(m.GetHostPath(), m.GetContainerPath(), m.GetReadOnly())
	}
	for _, m := range r.standing {
		taken := func(other mount.Mount) bool { return filepath.Clean(other.Target) == m.GetContainerPath() }
		if !slices.ContainsFunc(all, taken) {
			add(m.GetHostPath(), m.GetContainerPath(), m.GetReadOnly())
		}
	}
	return all
}

// environment returns the variables of a container as KEY=value. Paths in the attempt's directories
// are translated to paths inside the container.
func environment(a executor.Attempt) ([]string, error) {
	env := maps.Clone(a.Env)
	if a.Binding.GPUs != nil && len(a.Binding.GPUs) == 0 {
		if env == nil {
			env = map[string]string{}
		}
		env["NVIDIA_VISIBLE_DEVICES"] = "void" // images ask for all GPUs
	}
	list := make([]string, 0, len(env))
	for _, key := range slices.Sorted(maps.Keys(env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return nil, fmt.Errorf("%q is not a valid name of an environment variable", key)
		}
		if strings.ContainsRune(env[key], 0) {
			return nil, fmt.Errorf("the value of env.%s contains a NUL character, which an environment variable cannot hold", key)
		}
		list = append(list, key+"="+pathIn(env[key], a))
	}
	return list, nil
}

// pathIn translates a path of the node to the path inside the container. A value outside the
// attempt's directories is returned unchanged.
func pathIn(value string, a executor.Attempt) string {
	for _, dir := range []struct{ from, to string }{
		{a.Dirs.Temp, tempIn}, {a.Dirs.Workspace, WorkspaceDir}, {a.Dirs.Files, filesIn}, {a.Dirs.Shared, sharedIn},
	} {
		if !filepath.IsAbs(dir.from) {
			continue // the attempt has no such directory
		}
		if rest, ok := strings.CutPrefix(value, dir.from); ok && (rest == "" || rest[0] == '/') {
			return dir.to + rest
		}
	}
	return value
}
