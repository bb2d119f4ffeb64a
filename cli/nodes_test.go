package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

// gpuBox returns a draining node with two GPUs and one attempt left.
func gpuBox() *v1.Node {
	numa := int32(0)
	return &v1.Node{
		Name: "gpu-1", State: "draining", Reason: "new fan", Labels: []string{"fast", "gpu"}, Capabilities: map[string]string{"gpu": "nvidia", "docker": "27.1"},
		Executors: []string{"container", "shell"}, Running: 1, MaxParallel: 8,
		Cores: &v1.NodeAmount{Total: 8, Free: 6.5}, MemoryMb: &v1.NodeAmount{Total: 64 << 10, Free: 48 << 10}, DiskGb: &v1.NodeAmount{Total: 931.5, Free: 400},
		Gpus: &v1.NodeAmount{Total: 2, Free: 1}, LastBeatAt: after(19.4), RegisteredAt: after(-3600), StateSince: after(5), Machine: "9f3c", Incarnation: "i-1",
		DrainDeadline: after(605), SetTerms: &v1.NodeTerms{WhileGaming: "refuse", Hours: []string{"always"}},
		Snapshot: &v1.NodeSnapshot{
			Name: "gpu-1", Sequence: 1234, TakenAt: after(19.4), Cpu: &v1.CpuSnapshot{Cores: 8, UsagePercent: 18.6, LoadAvg_1M: 1.42},
			Disk: &v1.DiskSnapshot{IoUtilPercent: 3}, Network: &v1.NetworkSnapshot{BandwidthMbps: 1000, ThroughputMbps: 12},
			Terms: &v1.NodeTerms{KeptFor: []string{"gpu", "label=training"}, WhileGaming: "refuse"},
			Containers: &v1.ContainerPolicy{
				HostNetwork: true, Mounts: []*v1.MountRule{{Path: "/data"}, {Path: "/srv", ReadOnly: true}}, Capabilities: []string{"NET_ADMIN"},
			},
			Gpus:    []*v1.GpuSnapshot{{Name: "A10", MemoryMb: 23028, MemoryUsedMb: 1024, UsagePercent: 40}, {Index: 1, Name: "A10", MemoryMb: 23028}},
			Running: []*v1.RunningAttempt{{RunId: "nightly-4g5h6jkm", Task: "train", Claim: 3, Cores: 1.5, MemoryMb: 2048, Gpus: []int32{0}, NumaNode: &numa}},
		},
	}
}

func TestNodesList(t *testing.T) {
	f := fake(t)
	listed := gpuBox()
	listed.Snapshot = nil
	script(f, &v1.ListNodesResponse{NextPageToken: "more", Total: 4, Items: []*v1.Node{
		{
			Name: "a", State: "active", MaxParallel: 4, Cores: &v1.NodeAmount{Total: 4, Free: 4}, MemoryMb: &v1.NodeAmount{Total: 7951, Free: 7100},
			DiskGb: &v1.NodeAmount{Total: 98.4, Free: 61.2}, Gpus: &v1.NodeAmount{}, LastBeatAt: after(18.2), BenchedUntil: after(60),
		},
		listed,
		{Name: "old", State: "offline", Reason: "no heartbeat for 15s", LastBeatAt: after(-80)},
	}})
	showsGolden(t, "nodes-list", []string{"text", "json", "jsonl"}, "nodes", "list", "--gateway", f.url, "--state", "active", "--limit", "7", "--page-token", "x")
	if req, want := f.asked[0], (&v1.ListNodesRequest{State: "active", PageSize: 7, PageToken: "x"}); !proto.Equal(req, want) {
		t.Errorf("asked for %v", req)
	}
	script(f, &v1.ListNodesResponse{})
	if got := run(t, "nodes", "list", "--gateway", f.url, "-o", "json"); got.stdout != "{\n  \"items\": [],\n  \"nextPageToken\": \"\",\n  \"total\": 0\n}\n" {
		t.Errorf("an empty list is %q", got.stdout)
	}
}

func TestNodesGet(t *testing.T) {
	f := fake(t)
	script(f, &v1.GetNodeResponse{Node: gpuBox()})
	if says := showsGolden(t, "nodes-get", []string{"text", "json"}, "nodes", "get", "gpu-1", "--gateway", f.url); says != "" {
		t.Errorf("it says %q", says)
	}
}

// TestTrafficOfAnUnknownLink checks that a link of unknown speed is not shown as one of speed zero.
func TestTrafficOfAnUnknownLink(t *testing.T) {
	t.Parallel()
	if got, want := traffic(&v1.NetworkSnapshot{ThroughputMbps: 12}), "12 Mbit/s, of a link of unknown speed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNodesAreDrainedUndrainedAndRemoved(t *testing.T) {
	f := fake(t)
	script(f, &v1.DrainNodeResponse{Node: &v1.Node{Name: "a", State: "draining", Running: 2}})
	for _, test := range []struct {
		args   []string
		asked  proto.Message
		stderr string
	}{
		{[]string{"drain", "a", "--deadline", "10m", "--reason", "fan"}, &v1.DrainNodeRequest{Name: "a", Deadline: durationpb.New(10 * time.Minute), Reason: "fan"}, "node a is draining\n"},
		{[]string{"drain", "a"}, &v1.DrainNodeRequest{Name: "a"}, "node a is draining\n"},
		{[]string{"cordon", "a"}, &v1.DrainNodeRequest{Name: "a"}, "node a is draining\n"},
		{[]string{"undrain", "a"}, &v1.UndrainNodeRequest{Name: "a"}, "node a is active\n"},
		{[]string{"uncordon", "a"}, &v1.UndrainNodeRequest{Name: "a"}, "node a is active\n"},
		{[]string{"set", "a", "--only-for", "gpu", "--reserve-for", "label=b", "--while", "gaming=drain", "--hours", "Sat 08:00-20:00,Sun 10:00-12:00 UTC"},
			&v1.SetNodeTermsRequest{Name: "a", Terms: &v1.NodeTerms{KeptFor: []string{"gpu", "label=b"}, WhileGaming: "drain", Hours: []string{"Sat 08:00-20:00", "Sun 10:00-12:00 UTC"}}}, "the terms of node a are set\n"},
		{[]string{"set", "a", "--clear", "--only-for", "none", "--hours", "always"},
			&v1.SetNodeTermsRequest{Name: "a", Clear: true, Terms: &v1.NodeTerms{KeptFor: []string{"none"}, Hours: []string{"always"}}}, "the terms of node a are set\n"},
		{[]string{"set", "a", "--clear"}, &v1.SetNodeTermsRequest{Name: "a", Clear: true, Terms: &v1.NodeTerms{}}, "the terms of node a are set\n"},
		{[]string{"remove", "a"}, &v1.RemoveNodeRequest{Name: "a"}, "node a is removed\n"},
		{[]string{"remove", "a", "--dead"}, &v1.RemoveNodeRequest{Name: "a", Dead: true}, "node a is removed; attempts lost with it: 0\n"},
	} {
		f.asked = nil
		got := run(t, append(append([]string{"nodes"}, test.args...), "--gateway", f.url)...)
		if got.code != 0 || got.stdout != "" || got.stderr != test.stderr {
			t.Errorf("%v: %+v", test.args, got)
		}
		if len(f.asked) != 1 || !proto.Equal(f.asked[0], test.asked) {
			t.Errorf("%v: asked %v", test.args, f.asked)
		}
	}
	if got := run(t, "nodes", "remove", "a", "-o", "json", "--gateway", f.url); got.stdout != "{\n  \"lostAttempts\": 0,\n  \"name\": \"a\"\n}\n" {
		t.Errorf("%+v", got)
	}
	for code, want := range map[connect.Code]int{connect.CodeAborted: exit.CodeNotDone, connect.CodePermissionDenied: exit.CodeNotAllowed, connect.CodeUnavailable: exit.CodeSystem} {
		f.failNext = connect.NewError(code, errors.New("no"))
		run(t, "nodes", "drain", "a", "--gateway", f.url).ends(t, want, "")
	}
}

// TestDrainWait checks that drain --wait waits until the node is empty, although the gateway is unreachable for a
// while.
func TestDrainWait(t *testing.T) {
	t.Parallel()
	f := fake(t)
	node := func(running int32, drained bool) *v1.Node {
		return &v1.Node{Name: "a", State: "draining", Running: running, Drained: drained}
	}
	looks := func(drained *v1.Node, later ...*v1.Node) {
		script(f, &v1.DrainNodeResponse{Node: drained})
		var all []*v1.GetNodeResponse
		for _, n := range later {
			all = append(all, &v1.GetNodeResponse{Node: n})
		}
		script(f, all...)
	}
	looks(node(2, false), node(2, false), node(0, false), node(0, true))
	got := run(t, "nodes", "drain", "a", "--wait", "-o", "json", "--gateway", f.url)
	if want := "node a is draining\nnode a: 2 running\nnode a: 0 running\nnode a has drained\n"; got.code != 0 || got.stderr != want || !strings.Contains(got.stdout, `"drained": true`) {
		t.Errorf("%+v", got)
	}

	looks(node(1, false), &v1.Node{Name: "a", State: "active"})
	got = run(t, "nodes", "drain", "a", "--wait", "--gateway", f.url)
	if got.code != exit.CodeNotDone || !strings.Contains(got.stderr, "put back into service") {
		t.Errorf("%+v", got)
	}

	looks(node(1, false), &v1.Node{Name: "a", State: "offline"})
	if got = run(t, "nodes", "drain", "a", "--wait", "--gateway", f.url); got.code != 0 {
		t.Errorf("%+v", got)
	}

	looks(node(3, false), node(3, false))
	c := start(t, nil, "", "nodes", "drain", "a", "--wait", "--gateway", f.url)
	c.stderr.await(t, "3 running")
	f.mu.Lock()
	f.failNext = connect.NewError(connect.CodeUnavailable, errStopping)
	f.mu.Unlock()
	c.interrupt(exit.ErrInterrupted)
	c.ends(t, exit.CodeInterrupted, "nodes undrain a")
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, req := range f.asked {
		if _, undrained := req.(*v1.UndrainNodeRequest); undrained {
			t.Error("Ctrl-C ended the drain")
		}
	}
}

// TestDrainWaitOutlastsTheGateway checks that drain --wait continues after a failed poll, and ends when the node is
// gone.
func TestDrainWaitOutlastsTheGateway(t *testing.T) {
	t.Parallel()
	f := fake(t)
	three := &v1.Node{Name: "a", State: "draining", Running: 3}
	script(f, &v1.DrainNodeResponse{Node: three})
	script(f, &v1.GetNodeResponse{Node: three})
	c := start(t, nil, "", "nodes", "drain", "a", "--wait", "--gateway", f.url)
	c.stderr.await(t, "3 running")
	f.mu.Lock()
	f.failNext = connect.NewError(connect.CodeUnavailable, errStopping)
	f.mu.Unlock()
	script(f, &v1.GetNodeResponse{Node: &v1.Node{Name: "a", State: "draining", Running: 1}})
	c.stderr.await(t, "1 running")
	f.mu.Lock()
	f.failNext = connect.NewError(connect.CodeNotFound, errors.New(`there is no node "a"`))
	f.mu.Unlock()
	c.ends(t, exit.CodeUsage, "")
}

// TestNodeNoteNamesNeighbors checks that a node shows which other nodes hold a part of its machine.
func TestNodeNoteNamesNeighbors(t *testing.T) {
	n := &v1.Node{State: v1.NodeActive, Neighbors: []*v1.NodeNeighbor{{Name: "big-1", Cores: 1}, {Name: "gpu-2", Cores: 2.5, MemoryMb: 512, Gpus: []int32{0, 3}}}}
	want := "big-1 on the same machine holds 1 core; gpu-2 on the same machine holds 2.5 cores, 512 MiB, GPU 0, GPU 3"
	if got := (&system{}).nodeNote(n); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
