package placement

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func withGPUs(k float64) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Resources.Gpus = k }
}

func with(changes ...func(*historyv1.TaskRequest)) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) {
		for _, change := range changes {
			change(r)
		}
	}
}

func withGPUMemory(mb int32) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Resources.GpuMemoryMb = mb }
}

func withGPUModel(model string) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Resources.GpuModel = model }
}

// cards gives a node GPUs of the given names, of which each has the same memory.
func cards(memoryMB float64, names ...string) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		for i, name := range names {
			n.Gpus = append(n.Gpus, &v1.GpuSnapshot{Index: int32(i), Name: name, MemoryMb: memoryMB})
		}
	}
}

// holdingPart makes a node report an attempt of another run that holds a part of a GPU.
func holdingPart(gpu, thousandths, memoryMB int32) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		holding(-1, 0, 0, gpu)(n)
		n.Running[len(n.Running)-1].GpuPart = &v1.GpuPart{Thousandths: thousandths, MemoryMb: memoryMB}
	}
}

func withMemory(mb int32) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Resources.MemoryMb = mb }
}

func onNUMA(index int32) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Resources.NumaNode = &index }
}

func pinned(target string) func(*historyv1.TaskRequest) {
	return constrained(func(c *v1.Constraints) { c.TargetNode = target })
}

// holding makes a node report an attempt of another run that holds GPUs, cores and memory.
func holding(numa int32, cores, memoryMB float64, gpus ...int32) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		a := &v1.RunningAttempt{RunId: "other", Task: string(rune('a' + len(n.Running))), Claim: 1, Cores: cores, MemoryMb: memoryMB, Gpus: gpus}
		if numa >= 0 {
			a.NumaNode = &numa
		}
		n.Running = append(n.Running, a)
	}
}

func wide(cores int32) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) { n.Cpu.Cores, n.MaxParallel = cores, cores }
}

func TestWhatIsGranted(t *testing.T) {
	twoSockets := []func(*v1.NodeSnapshot){wide(8), numaNodes(2, 4, 4096), gpusOn(0, 0, 1, 1)}
	node := func(changes ...func(*v1.NodeSnapshot)) *v1.NodeSnapshot {
		return aNode("a", append(slices.Clone(twoSockets), changes...)...)
	}
	type grants struct {
		GPUs []int32
		NUMA int32
	}
	tests := map[string]struct {
		node *v1.NodeSnapshot
		ask  []func(*historyv1.TaskRequest)
		want grants
	}{
		"no GPU":                          {node(), nil, grants{nil, -1}},
		"one GPU":                         {node(), []func(*historyv1.TaskRequest){withGPUs(1)}, grants{[]int32{0}, 0}},
		"two of one NUMA node":            {node(holding(-1, 0, 0, 0)), []func(*historyv1.TaskRequest){withGPUs(2)}, grants{[]int32{2, 3}, 1}},
		"the smaller group":               {node(holding(-1, 0, 0, 2)), []func(*historyv1.TaskRequest){withGPUs(1)}, grants{[]int32{3}, 1}},
		"where the cores are":             {node(holding(0, 4, 0)), []func(*historyv1.TaskRequest){withGPUs(1)}, grants{[]int32{2}, 1}},
		"where the memory is":             {node(holding(0, 0, 4000)), []func(*historyv1.TaskRequest){withGPUs(2), withMemory(1000)}, grants{[]int32{2, 3}, 1}},
		"cores of both":                   {node(), []func(*historyv1.TaskRequest){withGPUs(2), withCores(5)}, grants{[]int32{0, 1}, -1}},
		"more than one has":               {node(), []func(*historyv1.TaskRequest){withGPUs(3)}, grants{[]int32{0, 1, 2}, -1}},
		"the larger group first":          {node(holding(-1, 0, 0, 0)), []func(*historyv1.TaskRequest){withGPUs(3)}, grants{[]int32{1, 2, 3}, -1}},
		"NUMA node asked":                 {node(), []func(*historyv1.TaskRequest){onNUMA(1)}, grants{nil, 1}},
		"NUMA node and GPUs":              {node(), []func(*historyv1.TaskRequest){onNUMA(1), withGPUs(1)}, grants{[]int32{2}, 1}},
		"NUMA node and far GPUs":          {node(), []func(*historyv1.TaskRequest){onNUMA(1), withGPUs(3)}, grants{[]int32{0, 2, 3}, 1}},
		"target with NUMA node":           {node(), []func(*historyv1.TaskRequest){pinned("a:1::2")}, grants{[]int32{2, 3}, 1}},
		"indices":                         {node(), []func(*historyv1.TaskRequest){pinned("a::1,3")}, grants{[]int32{1, 3}, -1}},
		"indices of one NUMA node":        {node(), []func(*historyv1.TaskRequest){pinned("a::3,2")}, grants{[]int32{2, 3}, 1}},
		"indices and one more":            {node(), []func(*historyv1.TaskRequest){pinned("a::3,2"), withGPUs(3)}, grants{[]int32{0, 2, 3}, -1}},
		"GPUs that do not tell":           {aNode("a", gpusOn(-1, -1), numaNodes(2, 4, 4096)), []func(*historyv1.TaskRequest){withGPUs(1)}, grants{[]int32{0}, -1}},
		"a machine that does not tell":    {aNode("a", gpusOn(0, 0)), []func(*historyv1.TaskRequest){withGPUs(1)}, grants{[]int32{0}, -1}},
		"a GPU required":                  {node(), []func(*historyv1.TaskRequest){constrained(func(c *v1.Constraints) { c.RequiresGpu = true })}, grants{[]int32{0}, 0}},
		"a part":                          {node(), []func(*historyv1.TaskRequest){withGPUs(0.5)}, grants{[]int32{0}, 0}},
		"a part, one GPU required":        {node(), []func(*historyv1.TaskRequest){constrained(func(c *v1.Constraints) { c.RequiresGpu = true }), withGPUs(0.5)}, grants{[]int32{0}, 0}},
		"a part of the fullest that fits": {node(holdingPart(0, 600, 0), holdingPart(1, 300, 0), holdingPart(2, 500, 0)), []func(*historyv1.TaskRequest){withGPUs(0.5)}, grants{[]int32{2}, 1}},
		"the rest of a GPU":               {node(holdingPart(0, 600, 0), holdingPart(3, 300, 0)), []func(*historyv1.TaskRequest){withGPUs(0.4)}, grants{[]int32{0}, 0}},
		"a part on a NUMA node":           {node(holdingPart(0, 600, 0)), []func(*historyv1.TaskRequest){withGPUs(0.4), onNUMA(1)}, grants{[]int32{2}, 1}},
		"no whole one that is in parts":   {node(holdingPart(0, 1, 0), holdingPart(1, 0, 1)), []func(*historyv1.TaskRequest){withGPUs(1)}, grants{[]int32{2}, 1}},
		"memory":                          {aNode("a", cards(80_000, "x", "x"), holdingPart(1, 0, 60_000)), []func(*historyv1.TaskRequest){withGPUMemory(20_000)}, grants{[]int32{1}, -1}},
		"more memory than is left":        {aNode("a", cards(80_000, "x", "x"), holdingPart(1, 0, 60_000)), []func(*historyv1.TaskRequest){withGPUMemory(20_001)}, grants{[]int32{0}, -1}},
		"a share, and memory of another":  {aNode("a", cards(80_000, "x", "x"), holdingPart(0, 100, 70_000), holdingPart(1, 900, 0)), []func(*historyv1.TaskRequest){withGPUs(0.1), withGPUMemory(20_000)}, grants{[]int32{1}, -1}},
		"memory beside a full share":      {aNode("a", cards(80_000, "x"), holdingPart(0, 1000, 0)), []func(*historyv1.TaskRequest){withGPUMemory(20_000)}, grants{[]int32{0}, -1}},
		"the GPUs of a model": {aNode("a", cards(80_000, "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "Tesla T4", "NVIDIA H100 80GB HBM3")),
			[]func(*historyv1.TaskRequest){withGPUs(2), withGPUModel("H-100 80gb")}, grants{[]int32{1, 3}, -1}},
		"whole GPUs with memory": {aNode("a", func(n *v1.NodeSnapshot) {
			cards(16_000, "T4", "T4", "T4")(n)
			n.Gpus[1].MemoryMb = 80_000
		}), []func(*historyv1.TaskRequest){withGPUs(1), withGPUMemory(20_000)}, grants{[]int32{1}, -1}},
		"a whole number of an earlier version": {node(), []func(*historyv1.TaskRequest){func(r *historyv1.TaskRequest) { r.Resources.WholeGpus = 2 }}, grants{[]int32{0, 1}, 0}},
		"a GPU required, more asked":           {node(), []func(*historyv1.TaskRequest){constrained(func(c *v1.Constraints) { c.RequiresGpu = true }), withGPUs(2)}, grants{[]int32{0, 1}, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := newQueue(newClock(), tt.node)
			q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", tt.ask...)})
			q.Place()
			placed, stuck := q.Take("r")
			if len(placed) != 1 {
				t.Fatalf("it waits: %v", stuck)
			}
			got := grants{placed[0].Gpus, -1}
			if placed[0].NumaNode != nil {
				got.NUMA = *placed[0].NumaNode
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("granted (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNodesOfOneMachineShareItsGPUs checks that two nodes of one machine are never granted the same
// GPU.
func TestNodesOfOneMachineShareItsGPUs(t *testing.T) {
	two := []func(*v1.NodeSnapshot){onMachine("m"), wide(8), numaNodes(2, 4, 4096), gpusOn(0, 0, 1, 1)}
	q := newQueue(newClock(), aNode("a", two...), aNode("b", two...))
	q.Request(Run{ID: "r"}, requests(0, 6, withGPUs(1)))
	q.Place()
	placed, stuck := q.Take("r")
	used := map[int32]string{}
	for _, a := range placed {
		for _, g := range a.Gpus {
			if used[g] != "" {
				t.Errorf("GPU %d was given to %s and %s", g, used[g], a.Task)
			}
			used[g] = a.Task
		}
	}
	if len(used) != 4 || len(stuck) != 2 {
		t.Errorf("%d GPUs were given out, and %d tasks wait", len(used), len(stuck))
	}
	if want := "0 of 2 nodes have 1 free GPU: a 0, b 0"; stuck[0].Reason != want {
		t.Errorf("reason %q, want %q", stuck[0].Reason, want)
	}
}

// TestGrantIsBestOfAllSubsets compares the chosen GPUs with all other sets of free GPUs: the choice
// binds the attempt to a NUMA node if any set allows that, and otherwise touches the fewest NUMA
// nodes.
func TestGrantIsBestOfAllSubsets(t *testing.T) {
	bound, spread := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		numa := rapid.SliceOfN(rapid.Int32Range(-1, 2), 1, 7).Draw(t, "numa")
		cores := rapid.Int32Range(1, 4).Draw(t, "cores")
		node := aNode("a", wide(16), gpusOn(numa...), numaNodes(3, cores, 2048))
		var taken []int32
		for i := range numa {
			if rapid.IntRange(0, 3).Draw(t, "taken") == 0 {
				taken = append(taken, int32(i))
			}
		}
		holding(-1, 0, 0, taken...)(node)
		on := rapid.Int32Range(0, 2).Draw(t, "busy")
		busy := rapid.Int32Range(0, cores).Draw(t, "held")
		holding(on, float64(busy), 0)(node)
		k := rapid.IntRange(1, 4).Draw(t, "gpus")
		need := rapid.Int32Range(0, 4).Draw(t, "need")

		q := newQueue(newClock(), node)
		q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask("t", withGPUs(float64(k)), withCores(float64(need)))})
		q.Place()
		placed, _ := q.Take("r")

		fits := func(n int32) bool { // NUMA node n has enough free cores
			return n >= 0 && (n != on && need <= cores || n == on && need+busy <= cores)
		}
		fewest, canBind := 99, false
		for set := range 1 << len(numa) {
			groups, size, free := map[int32]bool{}, 0, true
			for i, n := range numa {
				if set&(1<<i) != 0 {
					groups[n], size = true, size+1
					free = free && !slices.Contains(taken, int32(i))
				}
			}
			if size != k || !free {
				continue
			}
			fewest = min(fewest, len(groups))
			for n := range groups {
				canBind = canBind || len(groups) == 1 && fits(n)
			}
		}
		if fewest == 99 {
			if len(placed) != 0 {
				t.Fatalf("placed with %v although there are not %d free GPUs", placed[0].Gpus, k)
			}
			return
		}
		if len(placed) != 1 {
			t.Fatalf("not placed although there are %d free GPUs", k)
		}
		groups := map[int32]bool{}
		for i, g := range placed[0].Gpus {
			if slices.Contains(taken, g) || i > 0 && g <= placed[0].Gpus[i-1] {
				t.Fatalf("GPUs %v, of which %v are taken", placed[0].Gpus, taken)
			}
			groups[numa[g]] = true
		}
		if len(placed[0].Gpus) != k || len(groups) != fewest {
			t.Fatalf("GPUs %v on %d NUMA nodes, want %d on %d", placed[0].Gpus, len(groups), k, fewest)
		}
		if (placed[0].NumaNode != nil) != canBind {
			t.Fatalf("bound to %v, could be bound: %v", placed[0].NumaNode, canBind)
		}
		if canBind {
			if bound++; !groups[*placed[0].NumaNode] || !fits(*placed[0].NumaNode) {
				t.Fatalf("bound to NUMA node %d", *placed[0].NumaNode)
			}
		} else if fewest > 1 {
			spread++
		}
	})
	if bound+spread == 0 {
		t.Errorf("%d bound and %d spread: the test tests nothing", bound, spread)
	}
}

// TestNoGPUIsOversubscribed checks that the attempts on a GPU never hold more than a whole one or all its memory, and that one
// which holds a whole GPU is alone there, whatever two nodes of the machine are asked.
func TestNoGPUIsOversubscribed(t *testing.T) {
	shared, most := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		memory := []float64{8000, 24_000, 0}
		node := func(name string) *v1.NodeSnapshot {
			return aNode(name, onMachine("m"), wide(30), gpusOn(0, 1, 1), func(n *v1.NodeSnapshot) {
				for i, g := range n.Gpus {
					g.MemoryMb = memory[i]
				}
			})
		}
		q := newQueue(newClock(), node("a"), node("b"))
		type place struct {
			gpus          []int32
			share, memory float64
			whole         bool
		}
		held := map[string]place{}
		asked := map[string]*v1.Resources{}
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			if running := slices.Sorted(maps.Keys(held)); len(running) > 0 && rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
				task := rapid.SampledFrom(running).Draw(t, "ending")
				delete(held, task)
				release(q, "r", task, 1)
			}
			task := fmt.Sprint("t", i)
			share := float64(rapid.IntRange(0, 999).Draw(t, "thousandths")) / 1000
			res := &v1.Resources{Cores: new(float64), Gpus: rapid.SampledFrom([]float64{share, share, 0.5, 0.25, 1, 2}).Draw(t, "gpus"),
				GpuMemoryMb: rapid.SampledFrom([]int32{0, 0, 4000, 7000}).Draw(t, "memory")}
			asked[task] = res
			q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{aTask(task, func(r *historyv1.TaskRequest) { r.Resources = res })})
			q.Place()
			placed, _ := q.Take("r")
			for _, a := range placed {
				of := asked[a.Task]
				whole := of.Gpus >= 1 || of.Gpus == 0 && of.GpuMemoryMb == 0
				held[a.Task] = place{gpus: a.Gpus, share: of.Gpus, memory: float64(of.GpuMemoryMb), whole: whole}
			}
			for index := range memory {
				share, used, attempts, alone := 0.0, 0.0, 0, false
				for _, p := range held {
					if !slices.Contains(p.gpus, int32(index)) {
						continue
					}
					attempts++
					if p.whole {
						alone = true
					} else {
						share, used = share+p.share, used+p.memory
					}
				}
				if alone && attempts > 1 || share > 1+1e-9 || used > 0 && used > memory[index] {
					t.Fatalf("GPU %d has %d attempts, one of them alone: %v, %g of it and %g MiB", index, attempts, alone, share, used)
				}
				if most = max(most, attempts); attempts > 1 {
					shared++
				}
			}
		}
	})
	if shared == 0 {
		t.Error("no GPU was ever shared: the test tests nothing")
	}
	t.Logf("at most %d attempts on a GPU", most)
}
