package placement

import (
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestFilters(t *testing.T) {
	one := int32(1)
	tests := map[string]struct {
		node   *v1.NodeSnapshot
		change func(*historyv1.TaskRequest)
		reason string // "" if the node fits
		static bool
	}{
		"nothing asked": {node: aNode("a"), change: func(*historyv1.TaskRequest) {}},
		"type": {node: aNode("a"), static: true,
			change: func(r *historyv1.TaskRequest) { r.Type = "container" }, reason: "a does not run container tasks"},
		"type withheld": {node: aNode("a", func(s *v1.NodeSnapshot) { s.Withheld = map[string]string{"vps": "mend /x", "k8s_job": "no"} }), static: true,
			change: func(r *historyv1.TaskRequest) { r.Type = "vps" }, reason: "a does not run vps tasks: mend /x"},
		"executors present": {node: aNode("a"),
			change: constrained(func(c *v1.Constraints) { c.RequiresExecutors = []string{"shell"} })},
		"executors missing": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.RequiresExecutors = []string{"vps", "shell", "container"} }),
			reason: "a does not run vps, container tasks"},
		"all labels": {node: aNode("a", labels("gpu", "server")),
			change: constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"server", "gpu"} })},
		"label missing": {node: aNode("a", labels("server")), static: true,
			change: constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"server", "gpu"} }), reason: "a lacks label gpu"},
		"labels missing": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"server", "gpu"} }),
			reason: "a lacks labels server, gpu"},
		"one of any labels": {node: aNode("a", labels("b")),
			change: constrained(func(c *v1.Constraints) { c.AnyLabels = []string{"a", "b"} })},
		"none of any labels": {node: aNode("a", labels("c")), static: true,
			change: constrained(func(c *v1.Constraints) { c.AnyLabels = []string{"a", "b"} }),
			reason: "a has none of the labels a, b"},
		"refuses by its terms": {node: aNode("a", func(s *v1.NodeSnapshot) { s.Refusal = "in use for a game" }), change: func(*historyv1.TaskRequest) {},
			reason: "a is in use for a game"},
		"kept for GPUs": {node: aNode("a", gpus(1), keptFor("gpu")), static: true, change: func(*historyv1.TaskRequest) {},
			reason: "a is kept for tasks that ask for a GPU or tolerate gpu"},
		"kept for GPUs, and pinned to": {node: aNode("a", gpus(1), keptFor("gpu")), static: true,
			change: constrained(func(c *v1.Constraints) { c.TargetNode = "a" }), reason: "a is kept for tasks that ask for a GPU or tolerate gpu"},
		"kept for GPUs, and one asked":  {node: aNode("a", gpus(1), keptFor("gpu")), change: withGPUs(1)},
		"kept for GPUs, and one needed": {node: aNode("a", gpus(1), keptFor("gpu")), change: constrained(func(c *v1.Constraints) { c.RequiresGpu = true })},
		"kept for GPUs, and one targeted": {node: aNode("a", gpus(1), keptFor("gpu")),
			change: constrained(func(c *v1.Constraints) { c.TargetNode = "a::1" })},
		"kept for GPUs, tolerated": {node: aNode("a", keptFor("gpu")), change: constrained(func(c *v1.Constraints) { c.Tolerates = []string{"gpu"} })},
		"kept for GPUs, of its workspace": {node: aNode("a", gpus(1), keptFor("gpu")), change: func(r *historyv1.TaskRequest) {
			r.Later = &v1.Resources{Gpus: 1}
		}},
		"kept for GPUs, but with its workspace": {node: aNode("a", keptFor("gpu")), change: func(r *historyv1.TaskRequest) {
			r.Workspace = &historyv1.PlacedWorkspace{Name: "w", Node: "a"}
		}},
		"kept for a label": {node: aNode("a", keptFor("label=x"), labels("x")), static: true,
			change: constrained(func(c *v1.Constraints) { c.Tolerates = []string{"gpu"} }), reason: "a is kept for tasks that ask for label x or tolerate x"},
		"kept for a label that is asked":     {node: aNode("a", keptFor("label=x"), labels("x")), change: constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"x"} })},
		"kept for a label that may be there": {node: aNode("a", keptFor("label=x"), labels("x")), change: constrained(func(c *v1.Constraints) { c.AnyLabels = []string{"y", "x"} })},
		"kept for a label that is tolerated": {node: aNode("a", keptFor("label=x"), labels("x")), change: constrained(func(c *v1.Constraints) { c.Tolerates = []string{"x"} })},
		"kept for both, and one is tolerated": {node: aNode("a", keptFor("gpu", "label=x")), static: true,
			change: constrained(func(c *v1.Constraints) { c.Tolerates = []string{"x"} }), reason: "a is kept for tasks that ask for a GPU or tolerate gpu"},
		"kept for both": {node: aNode("a", keptFor("gpu", "label=x")), static: true, change: func(*historyv1.TaskRequest) {},
			reason: "a is kept for tasks that ask for a GPU or tolerate gpu, and for tasks that ask for label x or tolerate x"},
		"gaming avoided": {node: aNode("a", labels("gaming")), static: true,
			change: constrained(func(c *v1.Constraints) { c.AvoidGaming = true }), reason: "a has label gaming"},
		"gaming not avoided": {node: aNode("a", labels("gaming")), change: func(*historyv1.TaskRequest) {}},
		"target":             {node: aNode("a"), change: constrained(func(c *v1.Constraints) { c.TargetNode = "a" })},
		"target is not there": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.TargetNode = "b" }), reason: "there is no node b"},
		"target with NUMA": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.TargetNode = "a:1" }), reason: "a has no NUMA node 1"},
		"target's only NUMA node": {node: aNode("a"), change: constrained(func(c *v1.Constraints) { c.TargetNode = "a:0" })},
		"target with GPUs":        {node: aNode("a", gpus(2)), change: constrained(func(c *v1.Constraints) { c.TargetNode = "a::2" })},
		"target with more GPUs": {node: aNode("a", gpus(2)), static: true,
			change: constrained(func(c *v1.Constraints) { c.TargetNode = "a::3" }), reason: "a has 2 GPUs of 3 asked"},
		"target with GPU indices": {node: aNode("a", gpus(2)),
			change: constrained(func(c *v1.Constraints) { c.TargetNode = "a::0,1" })},
		"target with missing GPU indices": {node: aNode("a", gpus(3)), static: true,
			change: constrained(func(c *v1.Constraints) { c.TargetNode = "a::0,7" }), reason: "a lacks GPU 7"},
		"target that cannot be read": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.TargetNode = "a:x" }),
			reason: `target node "a:x": NUMA node "x" is not a number from 0 to 1023`},
		"numaNode": {node: aNode("a"), static: true,
			change: func(r *historyv1.TaskRequest) { r.Resources.NumaNode = &one }, reason: "a has no NUMA node 1"},
		"the only NUMA node, too small": {node: aNode("a"), static: true,
			change: func(r *historyv1.TaskRequest) { r.Resources.NumaNode = new(int32); withCores(99)(r) }, reason: "a has 4 cores of 99 asked"},
		"allowed": {node: aNode("a"), change: constrained(func(c *v1.Constraints) { c.AllowedNodes = []string{"b", "a"} })},
		"not allowed": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.AllowedNodes = []string{"b"} }),
			reason: "a is not among the allowed nodes"},
		"large enough for its workspace": {node: aNode("a", gpus(2)), change: func(r *historyv1.TaskRequest) {
			r.Later = &v1.Resources{Cores: new(4.0), MemoryMb: 1, Gpus: 2}
		}},
		"too small for its workspace": {node: aNode("a"), static: true, change: func(r *historyv1.TaskRequest) {
			r.Later = &v1.Resources{Cores: new(4.5)}
		}, reason: "a has 4 cores of 4.5 that other tasks of the workspace ask"},
		"too few GPUs for its workspace": {node: aNode("a", gpus(1)), static: true, change: func(r *historyv1.TaskRequest) {
			r.Later = &v1.Resources{Gpus: 2}
		}, reason: "a has 1 GPU of 2 that other tasks of the workspace ask"},
		"too little memory for its workspace": {node: aNode("a"), static: true, change: func(r *historyv1.TaskRequest) {
			r.Later = &v1.Resources{MemoryMb: 1 << 30}
		}, reason: "a has 8192 MiB of memory, of 1073741824 that other tasks of the workspace ask"},
		"forbidden": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.ForbiddenNodes = []string{"a"} }), reason: "a is forbidden"},
		"allowed and forbidden": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.AllowedNodes, c.ForbiddenNodes = []string{"a"}, []string{"a"} }),
			reason: "a is forbidden"},
		"capability": {node: aNode("a", func(n *v1.NodeSnapshot) { n.Capabilities = map[string]string{"gpu": "nvidia"} }),
			change: constrained(func(c *v1.Constraints) { c.RequiresCapabilities = map[string]string{"gpu": "nvidia"} })},
		"capability missing": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.RequiresCapabilities = map[string]string{"gpu": "nvidia"} }),
			reason: "a lacks capability gpu"},
		"capability empty and missing": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.RequiresCapabilities = map[string]string{"gpu": ""} }),
			reason: "a lacks capability gpu"},
		"QEMU missing": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.RequiresCapabilities = map[string]string{v1.QEMUCapability: "true"} }),
			reason: "a lacks QEMU (packages qemu-system-x86 and qemu-utils on Debian)"},
		"no shared folder": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.RequiresCapabilities = map[string]string{"shared-dir": "true"} }),
			reason: "a lacks a shared folder, which the task names as $SWITCHYARD_SHARED_DIR (--shared-dir of the worker)"},
		"QEMU of no use": {static: true,
			node:   aNode("a", func(n *v1.NodeSnapshot) { n.Withheld = map[string]string{v1.WithheldQEMU: "give it a shorter folder"} }),
			change: constrained(func(c *v1.Constraints) { c.RequiresCapabilities = map[string]string{v1.QEMUCapability: "true"} }),
			reason: "a does not run virtual machines: give it a shorter folder"},
		"capability of another value": {static: true,
			node:   aNode("a", func(n *v1.NodeSnapshot) { n.Capabilities = map[string]string{"gpu": "amd"} }),
			change: constrained(func(c *v1.Constraints) { c.RequiresCapabilities = map[string]string{"gpu": "nvidia"} }),
			reason: "a has capability gpu=amd instead of nvidia"},
		"image that the node offers": {node: aNode("a", offering(&v1.TaskSupport{VmImageDirs: []string{"/images"}})), change: offered(&historyv1.TaskNeeds{VmImage: "/images/x/a.qcow2"})},
		"image elsewhere": {node: aNode("a", offering(&v1.TaskSupport{VmImageDirs: []string{"/images"}})), static: true,
			change: offered(&historyv1.TaskNeeds{VmImage: "/images2/a.qcow2"}), reason: "a does not offer image /images2/a.qcow2 (switchyard worker --vm-images /images2)"},
		"several things that the node does not offer": {node: aNode("a", offering(&v1.TaskSupport{AgentTools: []string{"files"}})), static: true,
			change: offered(&historyv1.TaskNeeds{AgentTools: []string{"files", "fetch"}, AgentKey: "openai"}),
			reason: "a does not offer agent tool fetch (switchyard worker --agent-tools files,fetch), nor a key for openai (switchyard worker --agent-key-file openai=FILE)"},
		"node that does not report what it offers": {node: aNode("a"), change: offered(&historyv1.TaskNeeds{AgentProgram: "claude-code"})},
		"no numactl": {node: aNode("a", numaNodes(2, 2, 4096), offering(&v1.TaskSupport{})), static: true, change: onNUMA(1),
			reason: "a lacks numactl, which binds shell tasks to NUMA nodes (package numactl)"},
		"no numactl for the only NUMA node": {node: aNode("a", offering(&v1.TaskSupport{})), change: onNUMA(0)},
		"GPU":                               {node: aNode("a", gpus(1)), change: constrained(func(c *v1.Constraints) { c.RequiresGpu = true })},
		"GPU asked":                         {node: aNode("a"), change: constrained(func(c *v1.Constraints) { c.RequiresGpu = true }), reason: "a has no GPU", static: true},
		"GPUs in all": {node: aNode("a", gpus(1)), static: true,
			change: func(r *historyv1.TaskRequest) { r.Resources.Gpus = 2 }, reason: "a has 1 GPU of 2 asked"},
		"cores in all": {node: aNode("a"), static: true, change: withCores(4.5), reason: "a has 4 cores of 4.5 asked"},
		"all cores":    {node: aNode("a"), change: withCores(4)},
		"cores in use": {change: withCores(1.5), reason: "a has 1 core free of 1.5 asked",
			node: aNode("a", running("other", "t", 1), func(n *v1.NodeSnapshot) { n.ReservedCores = 3 })},
		"no cores in use of a free one": {change: withCores(0),
			node: aNode("a", running("other", "t", 1), func(n *v1.NodeSnapshot) { n.ReservedCores = 4 })},
		"memory in all": {node: aNode("a"), static: true,
			change: func(r *historyv1.TaskRequest) { r.Resources.MemoryMb = 8193 },
			reason: "a has 8192 MiB of memory, 8193 asked"},
		"memory in use": {reason: "a has 2192 MiB free of 4000 asked",
			change: func(r *historyv1.TaskRequest) { r.Resources.MemoryMb = 4000 },
			node:   aNode("a", running("other", "t", 1), func(n *v1.NodeSnapshot) { n.ReservedMemoryMb = 6000 })},
		"memory not available": {reason: "a has 100 MiB free of 101 asked",
			change: func(r *historyv1.TaskRequest) { r.Resources.MemoryMb = 101 },
			node:   aNode("a", func(n *v1.NodeSnapshot) { n.Memory.AvailableMb = 100.5 })},
		"minMemoryMb": {reason: "a has 1024 MiB available of 2048 asked",
			change: constrained(func(c *v1.Constraints) { c.MinMemoryMb = 2048 }),
			node:   aNode("a", func(n *v1.NodeSnapshot) { n.Memory.AvailableMb = 1024 })},
		"minMemoryMb in all": {node: aNode("a"), static: true,
			change: constrained(func(c *v1.Constraints) { c.MinMemoryMb = 9000 }),
			reason: "a has 8192 MiB of memory, 9000 asked"},
		"minDiskGb": {node: aNode("a"), reason: "a has 50 GiB of disk free of 60.5 asked",
			change: constrained(func(c *v1.Constraints) { c.MinDiskGb = 60.5 })},
		"minDiskGb in all": {node: aNode("a"), static: true, reason: "a has a disk of 100 GiB, 200 asked",
			change: constrained(func(c *v1.Constraints) { c.MinDiskGb = 200 })},
		"slots": {node: aNode("a", slots(1), running("other", "t", 1)), change: withCores(0), reason: "a has no free slot of 1"},
		"slots of a node that does not say": {change: withCores(0),
			node: aNode("a", slots(0), running("o", "1", 1), running("o", "2", 1), running("o", "3", 1))},
		"cores held by others": {change: withCores(1.5), reason: "a has 1 core free of 1.5 asked", node: aNode("a", holding(-1, 3, 0))},
		"memory held by others": {change: withMemory(4000), reason: "a has 2192 MiB free of 4000 asked",
			node: aNode("a", holding(-1, 0, 6000))},
		"what others hold, but for those that do not tell": {change: withCores(1), reason: "a has 0.5 cores free of 1 asked",
			node: aNode("a", holding(-1, 2, 0), running("o", "x", 1), func(n *v1.NodeSnapshot) { n.ReservedCores = 3.5 })},
		"GPUs held by others": {change: withGPUs(2), reason: "a has 1 GPU free of 2 asked",
			node: aNode("a", gpus(3), holding(-1, 1, 0, 0, 2))},
		"part of a GPU held by others": {change: withGPUs(0.5), reason: "a has 0.3 of a GPU free of 0.5 asked",
			node: aNode("a", gpus(2), holding(-1, 1, 0, 0), holdingPart(1, 700, 0))},
		"memory of a GPU held by others": {change: withGPUMemory(20_000), reason: "a has 19999 MiB of a GPU free of 20000 asked",
			node: aNode("a", cards(30_000, "x", "x"), holding(-1, 1, 0, 0), holdingPart(1, 1000, 10_001))},
		"share of the model": {change: with(withGPUs(0.5), withGPUModel("H100")), reason: "a has 0.25 of a GPU of model h100 free of 0.5 asked",
			node: aNode("a", cards(30_000, "NVIDIA H100 PCIe", "A100"), holdingPart(0, 750, 0))},
		"memory where the share is": {change: with(withGPUs(0.5), withGPUMemory(20_000)), reason: "a has 10000 MiB of a GPU free of 20000 asked",
			node: aNode("a", cards(30_000, "x", "x"), holdingPart(0, 0, 20_000), holdingPart(1, 600, 0))},
		"model": {static: true, change: with(withGPUs(1), withGPUModel("H-100")), reason: "a has no GPU of model h100", node: aNode("a", cards(30_000, "A100"))},
		"too few of the model": {static: true, change: with(withGPUs(2), withGPUModel("a 100")), reason: "a has 1 GPU of model a100 of 2 asked",
			node: aNode("a", cards(30_000, "A100", "T4"))},
		"memory of every GPU":    {static: true, change: with(withGPUs(2), withGPUMemory(30_001)), reason: "a has no GPU with 30001 MiB", node: aNode("a", cards(30_000, "x", "x"))},
		"memory that is unknown": {static: true, change: withGPUMemory(1), reason: "a has no GPU with 1 MiB", node: aNode("a", gpus(1))},
		"GPU by index of another model": {static: true, change: with(pinned("a::0,1"), withGPUModel("a100")), reason: "a has 1 GPU of model a100 of 2 asked",
			node: aNode("a", cards(30_000, "A100", "T4"))},
		"GPU by index held by others": {change: pinned("a::0,2"), reason: "a has GPUs 0, 2 in use",
			node: aNode("a", gpus(4), holding(-1, 1, 0, 0, 2))},
		"GPU by index, others are held": {change: pinned("a::1,3"), node: aNode("a", gpus(4), holding(-1, 1, 0, 0, 2))},
		"GPU in use for gaming": {change: withGPUs(1), reason: "a has its GPUs in use for gaming",
			node: aNode("a", gpus(1), func(n *v1.NodeSnapshot) { n.Gaming = true })},
		"GPU required, in use for gaming": {reason: "a has its GPUs in use for gaming",
			change: constrained(func(c *v1.Constraints) { c.RequiresGpu = true }),
			node:   aNode("a", gpus(1), func(n *v1.NodeSnapshot) { n.Gaming = true })},
		"no GPU asked, gaming": {change: withCores(1), node: aNode("a", gpus(1), func(n *v1.NodeSnapshot) { n.Gaming = true })},
		"gaming avoided while it lasts": {change: constrained(func(c *v1.Constraints) { c.AvoidGaming = true }),
			reason: "a has a user playing on it",
			node:   aNode("a", labels("gaming"), func(n *v1.NodeSnapshot) { n.Gaming = true })},
		"draining": {change: withCores(0), reason: "a is draining", node: aNode("a", func(n *v1.NodeSnapshot) { n.Draining = true })},
		"pinned to a draining node": {change: pinned("a"), reason: "a is draining",
			node: aNode("a", func(n *v1.NodeSnapshot) { n.Draining = true })},
		"NUMA node":         {change: onNUMA(1), node: aNode("a", numaNodes(2, 2, 4096))},
		"NUMA node missing": {change: onNUMA(2), static: true, reason: "a has no NUMA node 2", node: aNode("a", numaNodes(2, 2, 4096))},
		"cores of a NUMA node": {static: true, reason: "a has 2 cores of 3 asked on NUMA node 1",
			change: func(r *historyv1.TaskRequest) { withCores(3)(r); onNUMA(1)(r) }, node: aNode("a", numaNodes(2, 2, 4096))},
		"memory of a NUMA node": {static: true, reason: "a has 4096 MiB of 5000 asked on NUMA node 1",
			change: func(r *historyv1.TaskRequest) { withMemory(5000)(r); onNUMA(1)(r) }, node: aNode("a", numaNodes(2, 2, 4096))},
		"NUMA node in use": {change: onNUMA(1), reason: "a has no room left on NUMA node 1",
			node: aNode("a", numaNodes(2, 2, 4096), holding(1, 1.5, 0))},
		"NUMA node in use by what is bound to another": {change: onNUMA(0),
			node: aNode("a", numaNodes(2, 2, 4096), holding(1, 1.5, 0))},
		"container that needs nothing": {change: needing(&historyv1.ContainerNeeds{}), node: aNode("a")},
		"privileged container": {change: needing(&historyv1.ContainerNeeds{Privileged: true}), static: true, node: aNode("a"),
			reason: "a does not allow privileged containers (switchyard worker --allow-privileged)"},
		"privileged container, allowed": {change: needing(&historyv1.ContainerNeeds{Privileged: true}),
			node: aNode("a", allowing(&v1.ContainerPolicy{Privileged: true}))},
		"mount to write, allowed to read": {static: true, node: aNode("a", allowing(&v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: "/d", ReadOnly: true}}})),
			change: needing(&historyv1.ContainerNeeds{HostNetwork: true, Mounts: []*v1.MountRule{{Path: "/d/e"}}}),
			reason: "a does not allow the host's network (switchyard worker --allow-host-network), nor mounting /d/e without readOnly: true (switchyard worker --allow-mount /d/e)"},
		"maxParallelPerNode": {node: aNode("a", running("r", "1", 1), running("r", "2", 1)),
			change: constrained(func(c *v1.Constraints) { c.MaxParallelPerNode = 2 }),
			reason: "a has 2 tasks of this run, the maximum"},
		"maxParallelPerNode of another run": {node: aNode("a", running("o", "1", 1), running("o", "2", 1)),
			change: constrained(func(c *v1.Constraints) { c.MaxParallelPerNode = 2 })},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := newQueue(newClock(), tt.node)
			q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", tt.change)})
			nodes, reasons := placeAll(t, q, "r")
			want := ""
			switch {
			case tt.static:
				want = "no node could ever fit: " + tt.reason
			case tt.reason != "":
				want = "0 of 1 nodes fit: " + tt.reason
			}
			if reasons["t"] != want {
				t.Errorf("reason\n got %q\nwant %q", reasons["t"], want)
			}
			if placed := nodes["t"] == "a"; placed != (want == "") {
				t.Errorf("placed on %q, reason %q", nodes["t"], reasons["t"])
			}
		})
	}
}

func needing(n *historyv1.ContainerNeeds) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Container = n }
}

func offered(n *historyv1.TaskNeeds) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Needs = n }
}

func offering(s *v1.TaskSupport) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) { n.Support = s }
}

func allowing(p *v1.ContainerPolicy) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) { n.Containers = p }
}

// TestContainersGoWhereTheyAreAllowed checks that requests that differ only in the container's
// needs are told apart, as are nodes that differ only in what they allow, and that the queue looks
// again at a node that starts to allow more.
func TestContainersGoWhereTheyAreAllowed(t *testing.T) {
	clock := newClock()
	allowed := &v1.ContainerPolicy{Capabilities: []string{"NET_ADMIN"}, Mounts: []*v1.MountRule{{Path: "/data", ReadOnly: true}}}
	q := newQueue(clock, aNode("a"), aNode("b", allowing(allowed)))
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{
		aTask("harmless", func(r *historyv1.TaskRequest) { r.Constraints.TargetNode = "a" }),
		aTask("reads", needing(&historyv1.ContainerNeeds{Mounts: []*v1.MountRule{{Path: "/data/x", ReadOnly: true}}})),
		aTask("admin", needing(&historyv1.ContainerNeeds{Capabilities: []string{"NET_ADMIN"}})),
		aTask("writes", needing(&historyv1.ContainerNeeds{Mounts: []*v1.MountRule{{Path: "/data/x"}}})),
	})
	nodes, reasons := placeAll(t, q, "r")
	if nodes["harmless"] != "a" || nodes["reads"] != "b" || nodes["admin"] != "b" || nodes["writes"] != "" {
		t.Fatalf("placed %v", nodes)
	}
	want := "no node could ever fit: a does not allow mounting /data/x (switchyard worker --allow-mount /data/x); " +
		"b does not allow mounting /data/x without readOnly: true (switchyard worker --allow-mount /data/x)"
	if reasons["writes"] != want {
		t.Errorf("reason\n got %q\nwant %q", reasons["writes"], want)
	}
	clock.add(time.Second)
	q.SetNodes(live(aNode("a", allowing(&v1.ContainerPolicy{Mounts: []*v1.MountRule{{Path: "/data"}}})), aNode("b", allowing(allowed))))
	if nodes, _ := placeAll(t, q, "r"); nodes["writes"] != "a" {
		t.Errorf("placed %v", nodes)
	}
}
