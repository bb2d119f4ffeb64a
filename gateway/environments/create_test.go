package environments

import (
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// fleet returns an offline node, two nodes with containers and machines, and one with shell only.
func fleet() []*v1.Node {
	node := func(name, state, reason string, free float64, qemu string, executors ...string) *v1.Node {
		return &v1.Node{Name: name, State: state, Reason: reason, DiskGb: &v1.NodeAmount{Free: free}, Capabilities: map[string]string{v1.QEMUCapability: qemu}, Executors: executors}
	}
	return []*v1.Node{
		node("away", v1.NodeOffline, "silent since 10:00", 900, "true", v1.TypeContainer, v1.TypeVPS),
		node("small", v1.NodeActive, "", 10, "true", v1.TypeContainer, v1.TypeVPS),
		node("large", v1.NodeActive, "", 500, "", v1.TypeContainer, v1.TypeVPS),
		node("bare", v1.NodeActive, "", 800, "true", v1.TypeShell),
	}
}

func running() map[string]Source {
	return map[string]Source{
		"vps":   {Run: "desk-1", Chain: "c1", Task: "vps", Type: v1.TypeVPS, Node: "small", Claim: 4},
		"build": {Run: "desk-1", Chain: "c1", Task: "build", Type: v1.TypeShell, Node: "bare", Claim: 5},
	}
}

func TestCreateStartsACaptureOfTheSource(t *testing.T) {
	for name, test := range map[string]struct {
		req  *v1.CreateEnvironmentRequest
		want func(*historyv1.CaptureRequest) bool
		node string
	}{
		"image": {&v1.CreateEnvironmentRequest{Image: "debian:13", RegistryAuth: "hub"}, func(in *historyv1.CaptureRequest) bool {
			return in.GetEnvironment().GetImage() == "debian:13" && in.GetRegistryAuth() == "hub"
		}, "large"},
		"node":    {&v1.CreateEnvironmentRequest{Image: "debian:13", Node: "small"}, func(in *historyv1.CaptureRequest) bool { return true }, "small"},
		"machine": {&v1.CreateEnvironmentRequest{VmImage: "/srv/debian.qcow2"}, func(in *historyv1.CaptureRequest) bool { return in.GetVmImage() == "/srv/debian.qcow2" }, "small"},
		"bucket":  {&v1.CreateEnvironmentRequest{VmImage: "s3://images/debian.qcow2?region=eu"}, func(in *historyv1.CaptureRequest) bool { return in.GetVmImage() != "" }, "small"},
		"task": {&v1.CreateEnvironmentRequest{Run: "desk-1", Task: "vps"}, func(in *historyv1.CaptureRequest) bool {
			return in.GetChain() == "c1" && in.GetClaim() == 4 && in.GetType() == v1.TypeVPS && in.GetEnvironment().GetTask() == "vps"
		}, "small"},
		"the only one": {&v1.CreateEnvironmentRequest{Run: "desk-1"}, func(in *historyv1.CaptureRequest) bool {
			return in.GetEnvironment().GetTask() == "vps" && in.GetEnvironment().GetRun() == "desk-1"
		}, "small"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakes{nodes: fleet(), sources: running()}
			ctx := auth.With(t.Context(), &auth.Principal{Name: "ann"})
			test.req.Name = "tools"
			res, err := f.service().CreateEnvironment(ctx, connect.NewRequest(test.req))
			if err != nil || len(f.started) != 1 || !test.want(f.started[0]) {
				t.Fatalf("%v; started %v", err, f.started)
			}
			e := f.started[0].GetEnvironment()
			if e.GetNode() != test.node || e.GetCreatedBy() != "ann" || e.GetVersion() != 0 || e.GetState() != v1.EnvironmentCreating || e.GetCreatedAt() == nil {
				t.Errorf("started %v", e)
			}
			if len(f.reserved) != 1 || f.reserved[0] != e.GetArchive()+" "+test.node+" tools" || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(e.GetArchive()) {
				t.Errorf("reserved %q for %s", f.reserved, e.GetArchive())
			}
			if res.Msg.GetEnvironment().GetVersion() != 1 || res.Header().Get("Location") != "/v1/environments/tools" {
				t.Errorf("answered %v, %v", res.Msg, res.Header())
			}
		})
	}
}

func TestCreateReplacesOnlyOnRequest(t *testing.T) {
	f := &fakes{nodes: fleet(), kept: map[string]*v1.Environment{"tools": {Name: "tools", State: v1.EnvironmentReady, Version: 3, Archive: "0f/1"}}}
	req := &v1.CreateEnvironmentRequest{Name: "tools", Image: "debian"}
	_, err := f.service().CreateEnvironment(t.Context(), connect.NewRequest(req))
	if connect.CodeOf(err) != connect.CodeAlreadyExists || !strings.Contains(err.Error(), "version 3") || !strings.Contains(err.Error(), "--replace") || len(f.reserved) != 0 {
		t.Errorf("%v; reserved %q", err, f.reserved)
	}
	req.Replace = true
	res, err := f.service().CreateEnvironment(t.Context(), connect.NewRequest(req))
	if err != nil || f.started[0].GetEnvironment().GetVersion() != 3 || res.Msg.GetEnvironment().GetVersion() != 4 {
		t.Errorf("%v, %v; started %v", res, err, f.started)
	}
	f.creations = map[string]*v1.Environment{"tools": {Name: "tools", State: v1.EnvironmentCreating, Version: 4}}
	if _, err = f.service().CreateEnvironment(t.Context(), connect.NewRequest(req)); connect.CodeOf(err) != connect.CodeAlreadyExists || !strings.Contains(err.Error(), "is being created") || len(f.started) != 1 {
		t.Errorf("while it is created: %v", err)
	}
	f.creations["tools"].State = v1.EnvironmentFailed
	servicetest.Do(t, t.Context(), f.service().CreateEnvironment, req)
	f.overtaken = true
	if _, err = f.service().CreateEnvironment(t.Context(), connect.NewRequest(req)); connect.CodeOf(err) != connect.CodeAlreadyExists || len(f.released) != 1 || !strings.HasPrefix(f.reserved[len(f.reserved)-1], f.released[0]) {
		t.Errorf("overtaken: %v; released %q of %q", err, f.released, f.reserved)
	}
}

func TestCreateRefusesBadRequests(t *testing.T) {
	f := &fakes{nodes: fleet(), sources: running()}
	for says, test := range map[string]struct {
		req  *v1.CreateEnvironmentRequest
		code connect.Code
	}{
		"give one of image, vm_image and run":       {&v1.CreateEnvironmentRequest{}, connect.CodeInvalidArgument},
		"mutually exclusive; set only one":          {&v1.CreateEnvironmentRequest{Image: "a", Run: "b"}, connect.CodeInvalidArgument},
		"task is set without run":                   {&v1.CreateEnvironmentRequest{Image: "a", Task: "b"}, connect.CodeInvalidArgument},
		"created on the node that runs it":          {&v1.CreateEnvironmentRequest{Run: "desk-1", Node: "small"}, connect.CodeInvalidArgument},
		"registry_auth applies only to image":       {&v1.CreateEnvironmentRequest{Run: "desk-1", RegistryAuth: "hub"}, connect.CodeInvalidArgument},
		`vm_image "debian.qcow2" is neither`:        {&v1.CreateEnvironmentRequest{VmImage: "debian.qcow2"}, connect.CodeInvalidArgument},
		"task build of run desk-1 is of type shell": {&v1.CreateEnvironmentRequest{Run: "desk-1", Task: "build"}, connect.CodeAborted},
		"no task of run gone runs on a node":        {&v1.CreateEnvironmentRequest{Run: "gone"}, connect.CodeAborted},
		`no node "smal"; did you mean small?`:       {&v1.CreateEnvironmentRequest{Image: "a", Node: "smal"}, connect.CodeNotFound},
		"it is offline (silent since 10:00)":        {&v1.CreateEnvironmentRequest{Image: "a", Node: "away"}, connect.CodeAborted},
		"it runs no containers":                     {&v1.CreateEnvironmentRequest{Image: "a", Node: "bare"}, connect.CodeAborted},
		"it runs no virtual machines":               {&v1.CreateEnvironmentRequest{VmImage: "/a", Node: "large"}, connect.CodeAborted},
	} {
		test.req.Name = "tools"
		servicetest.Refused(t, t.Context(), f.service().CreateEnvironment, test.req, test.code, says)
	}
	if len(f.reserved)+len(f.started) != 0 {
		t.Errorf("reserved %v, started %v", f.reserved, f.started)
	}
}

func TestCreateExplainsWhyNoNodeFits(t *testing.T) {
	f := &fakes{nodes: fleet()[2:]}
	f.nodes[0].Snapshot = &v1.NodeSnapshot{Withheld: map[string]string{v1.TypeVPS: "no engine answers"}}
	f.nodes[0].Executors = []string{v1.TypeContainer}
	servicetest.Refused(t, t.Context(), f.service().CreateEnvironment, &v1.CreateEnvironmentRequest{Name: "tools", VmImage: "/a"}, connect.CodeAborted,
		"bare runs no virtual machines; large runs no virtual machines (no engine answers)")
	f.nodes = nil
	servicetest.Refused(t, t.Context(), f.service().CreateEnvironment, &v1.CreateEnvironmentRequest{Name: "tools", Image: "a"}, connect.CodeAborted, "there are no nodes")
}
