package main

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	temporal = "go.temporal.io/"
	// api is the public data model. switchyard/proto has the internal messages, too.
	api = "switchyard/proto/switchyard/v1"
)

// arrows lists the imports that are forbidden outside tests: from is a package with everything below it, not holds
// prefixes of import paths that it must not import, but holds the exceptions.
var arrows = []struct {
	from string
	not  []string
	but  []string
}{
	{"proto", []string{"switchyard/workflows", "switchyard/activities", "switchyard/workers", "switchyard/gateway", "switchyard/cli", temporal}, nil},
	// Pure packages know the data model but not Temporal.
	{"workflows/names", []string{"switchyard/", temporal}, nil},
	{"workflows/nearest", []string{"switchyard/", temporal}, nil},
	{"workflows/cron", []string{"switchyard/", temporal}, []string{"switchyard/workflows/nearest"}},
	{"workflows/bashism", []string{"switchyard/", temporal, "os", "net"}, nil},
	{"workflows/interpreter", []string{"switchyard/", temporal, "os", "net"}, []string{"switchyard/workflows/nearest"}},
	{"workflows/secretref", []string{"switchyard/", temporal}, []string{"switchyard/workflows/nearest"}},
	{"workflows/structs", []string{"switchyard/", temporal}, nil},
	{"workflows/sshkey", []string{"switchyard/", temporal}, nil},
	{"workflows/core/dag", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/names"}},
	{"workflows/core/flight", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/core/dag", "switchyard/workflows/admission", "switchyard/workflows/definition", "switchyard/workflows/eventlog", "switchyard/workflows/limits", "switchyard/workflows/names", "switchyard/workflows/phrase", "switchyard/workflows/structs"}},
	{"workflows/core/fanout", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/core/dag", "switchyard/workflows/core/flight", "switchyard/workflows/definition", "switchyard/workflows/limits", "switchyard/workflows/names", "switchyard/workflows/phrase", "switchyard/workflows/structs"}},
	{"workflows/core/child", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/core/flight"}},
	{"workflows/core/command", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/core/dag", "switchyard/workflows/core/fanout", "switchyard/workflows/core/flight", "switchyard/workflows/names", "switchyard/workflows/phrase"}},
	{"workflows/core/dataflow", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/core/command", "switchyard/workflows/core/dag", "switchyard/workflows/core/fanout", "switchyard/workflows/core/flight", "switchyard/workflows/definition", "switchyard/workflows/names", "switchyard/workflows/structs"}},
	{"workflows/calls", []string{"switchyard/"}, []string{"switchyard/workflows/definition", "switchyard/workflows/names", "switchyard/workflows/options", "switchyard/workflows/pending"}},
	{"workflows/admission", []string{"switchyard/", temporal}, nil},
	{"workflows/condition", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/condition", "switchyard/workflows/nearest", "switchyard/workflows/structs"}},
	{"workflows/notification", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/condition", "switchyard/workflows/definition", "switchyard/workflows/names"}},
	{"workflows/dataconverter", []string{"switchyard/"}, []string{"switchyard/proto"}},
	{"workflows/visibility", []string{"switchyard/"}, []string{api, "switchyard/workflows/names"}},
	{"workflows/policy", []string{"switchyard/", temporal, "os"}, []string{"switchyard/proto", "switchyard/workflows/cron"}},
	{"workflows/podspec", []string{"switchyard/", temporal}, []string{api, "switchyard/workflows/condition", "switchyard/workflows/interpreter", "switchyard/workflows/nearest", "switchyard/workflows/policy", "switchyard/workflows/structs"}},
	{"workflows/definition", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/podspec", "switchyard/workflows/definition/source", "switchyard/workflows/nearest", "switchyard/workflows/bashism", "switchyard/workflows/condition", "switchyard/workflows/cron", "switchyard/workflows/interpreter", "switchyard/workflows/names", "switchyard/workflows/policy", "switchyard/workflows/secretref", "switchyard/workflows/sshkey", "switchyard/workflows/structs"}},
	{"activities/placement", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/workflows/names", "switchyard/workflows/policy"}},
	{"activities/executor", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/executor", "switchyard/activities/hostlist", "switchyard/activities/statedir", "switchyard/workflows/interpreter", "switchyard/workflows/policy", "switchyard/workflows/podspec", "switchyard/workflows/structs"}},
	{"activities/executor/vps", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/executor", "switchyard/activities/executor/container", "switchyard/activities/executor/qemu"}},
	{"activities/executor/qemu", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/executor", "switchyard/activities/executor/container", "switchyard/activities/executor/guest", "switchyard/activities/executor/lifecycle", "switchyard/activities/executor/shell/cgroup"}},
	{"activities/executor/qemu/qmp", []string{"switchyard/", temporal}, nil},
	{"activities/executor/k8sjob/manifest", []string{"switchyard/", "k8s.io/client-go", temporal}, []string{api, "switchyard/activities/executor", "switchyard/workflows/interpreter", "switchyard/workflows/podspec"}},
	{"activities/executor/k8sjob/cluster", []string{"switchyard/"}, []string{api}},
	// The helper starts in every pod, and the node reads what it prints.
	{"activities/executor/k8sjob/podhelper", []string{"switchyard/", temporal}, nil},
	{"activities/executor/k8sjob/podlog", []string{"switchyard/"}, nil},
	{"activities/executor/tartree", []string{"switchyard/", temporal}, nil},
	// The guest package needs only a login on the machine, however the machine was started.
	{"activities/executor/guest", []string{"switchyard/activities/executor/", "switchyard/workflows", temporal}, []string{"switchyard/activities/executor/tartree"}},
	{"activities/executor/lifecycle", []string{"switchyard/", temporal}, []string{"switchyard/activities/executor"}},
	{"activities/executor/singleflight", []string{"switchyard/", temporal}, nil},
	{"activities/executor/qemu/disk", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/executor"}},
	{"activities/executor/qemu/seed", []string{"switchyard/", temporal}, nil},
	{"activities/executor/inside", []string{"switchyard/activities/executor/", temporal}, []string{"switchyard/activities/executor/shell/procfs", "switchyard/activities/executor/tartree"}},
	// Agent tools know neither the loop that calls them nor the models, and take executors as interfaces.
	{"activities/executor/subagent/tool", []string{"switchyard/activities/executor/subagent", "switchyard/activities/executor/shell"}, []string{"switchyard/activities/executor/subagent/tool"}},
	// The SSH server can serve any attempt through its inside interface.
	{"activities/sessions/sshserver", []string{"switchyard/", temporal}, []string{"switchyard/activities/executor"}},
	{"activities/filelock", []string{"switchyard/", temporal}, nil},
	{"activities/statedir", []string{"switchyard/", temporal}, nil},
	{"activities/hostlist", []string{"switchyard/", temporal}, nil},
	{"activities/notifications", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/hostlist", "switchyard/activities/secrets/mask", "switchyard/activities/secrets/vault", "switchyard/activities/store", "switchyard/drawing/words", "switchyard/workflows/notification", "switchyard/workflows/secretref"}},
	{"activities/owners", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/store"}},
	{"gateway/owners", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/owners", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror"}},
	{"activities/httpguard", []string{"switchyard/", temporal}, nil},
	{"activities/gatewayclient", []string{"switchyard/", temporal}, nil},
	{"activities/capture", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/activities/environments", "switchyard/activities/executor", "switchyard/activities/heartbeat"}},
	{"activities/artifacts", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/store"}},
	{"activities/environments", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/executor", "switchyard/activities/store"}},
	{"activities/grants", []string{"switchyard/", temporal}, []string{"switchyard/activities/store"}},
	{"activities/store", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/filelock", "switchyard/activities/gatewayclient", "switchyard/activities/store"}},
	{"activities/store/storekey", []string{"switchyard/", temporal}, nil},
	{"activities/metrics", []string{"switchyard/"}, []string{"switchyard/activities/httpguard"}},
	{"activities/logs", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/store", "switchyard/activities/secrets/mask"}},
	{"activities/gitclone", []string{"switchyard/", temporal}, []string{"switchyard/activities/secrets/mask"}},
	{"activities/secrets/mask", []string{"switchyard/", temporal}, nil},
	{"workers/node", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/filelock", "switchyard/activities/statedir"}},
	// Workflow code does no I/O. It shares only names and the pure packages with the activities.
	{"workflows", []string{"switchyard/activities", "switchyard/workers", "switchyard/gateway", "switchyard/cli", "go.temporal.io/sdk/client", "go.temporal.io/sdk/worker", "os", "net"}, []string{"net/netip"}},
	{"activities/heartbeat", []string{"switchyard/"}, nil},
	{"activities/schedules", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/workflows/cron", "switchyard/workflows/dataconverter", "switchyard/workflows/definition", "switchyard/workflows/names"}},
	{"activities/secrets", []string{"switchyard/", temporal}, []string{"switchyard/activities/gatewayclient", api, "switchyard/activities/secrets", "switchyard/activities/store", "switchyard/workflows/secretref"}},
	{"activities/results", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/store"}},
	{"activities/presence", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/activities/heartbeat", "switchyard/workflows/names"}},
	{"activities/liveness", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/activities/executor", "switchyard/workflows/names"}},
	{"activities/sessions", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/executor", "switchyard/activities/gatewayclient", "switchyard/activities/sessions"}},
	{"activities/sessions/caller", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/executor", "switchyard/activities/sessions/wire"}},
	{"activities/sessions/link", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/gatewayclient", "switchyard/activities/sessions/ticket", "switchyard/activities/sessions/wire"}},
	{"activities/sessions/ticket", []string{"switchyard/", temporal}, []string{api}},
	{"activities/sessions/wire", []string{"switchyard/", temporal}, []string{api}},
	{"activities/taskrunner", []string{"switchyard/activities/orchestrator", "switchyard/activities/presence", "switchyard/activities/placement"}, nil},
	{"activities/orchestrator", []string{"switchyard/activities/taskrunner", "switchyard/activities/presence", "switchyard/activities/executor"}, nil},
	{"activities", []string{"switchyard/workers", "switchyard/gateway", "switchyard/cli"}, nil},
	{"workers", []string{"switchyard/gateway", "switchyard/cli"}, nil},
	{"workers/embedded", []string{"switchyard/"}, []string{"switchyard/activities/filelock", "switchyard/activities/httpguard"}},
	{"gateway", []string{"switchyard/workers", "switchyard/cli"}, nil},
	{"gateway/openapi", []string{"switchyard/", temporal}, []string{"switchyard/gateway/openapi"}},
	{"gateway/singletask", []string{"switchyard/", temporal}, []string{api}},
	{"gateway/mcp", []string{"switchyard/", temporal}, []string{"switchyard/docs", api, "switchyard/gateway/auth", "switchyard/gateway/inprocess", "switchyard/gateway/openapi", "switchyard/gateway/singletask", "switchyard/workflows/definition", "switchyard/workflows/nearest", "switchyard/workflows/structs"}},
	{"gateway/a2a", []string{"switchyard/", temporal}, []string{api, "switchyard/gateway/auth", "switchyard/gateway/inprocess", "switchyard/workflows/definition", "switchyard/workflows/nearest", "switchyard/workflows/structs"}},
	{"gateway/rest", []string{"switchyard/"}, []string{api, "switchyard/gateway/rpcerror", "switchyard/workflows/nearest", "switchyard/workflows/structs"}},
	{"gateway/rpcerror", []string{"switchyard/"}, []string{"switchyard/activities/store", "switchyard/activities/registry", "switchyard/workflows/nearest"}},
	{"gateway/paging", []string{"switchyard/"}, []string{"switchyard/gateway/rpcerror", "switchyard/workflows/names"}},
	{"gateway/runview", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/gateway/rpcerror", "switchyard/activities/store", "switchyard/activities/registry", "switchyard/workflows/names", "switchyard/workflows/visibility", "switchyard/workflows/nearest", "switchyard/workflows/phrase", "switchyard/workflows/dataconverter", "switchyard/workflows/definition"}},
	{"gateway/inprocess", []string{"switchyard/", temporal}, nil},
	{"gateway/edge", []string{"switchyard/"}, []string{api, "switchyard/gateway/rpcerror", "switchyard/activities/httpguard", "switchyard/workflows/structs"}},
	{"gateway/auth", []string{"switchyard/"}, []string{api, "switchyard/gateway/edge", "switchyard/gateway/rpcerror"}},
	{"gateway/audit", []string{"switchyard/"}, []string{api, "switchyard/activities/store", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror"}},
	{"gateway/oidc", []string{"switchyard/"}, []string{api, "switchyard/gateway/auth"}},
	{"gateway/tokens", []string{"switchyard/"}, []string{api, "switchyard/activities/store", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/workflows/names"}},
	{"gateway/sshdoor", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/executor", "switchyard/activities/sessions/sshserver", "switchyard/activities/store", "switchyard/gateway/auth", "switchyard/gateway/rpcerror", "switchyard/workflows/names", "switchyard/workflows/sshkey"}},
	{"gateway/sshkeys", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/store", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/workflows/sshkey"}},
	{"gateway/nodeaccess", []string{"switchyard/"}, []string{api, "switchyard/activities/grants", "switchyard/activities/store/storekey", "switchyard/gateway/auth", "switchyard/gateway/runview", "switchyard/workflows/names"}},
	{"gateway/secrets", []string{"switchyard/"}, []string{api, "switchyard/activities/secrets/vault", "switchyard/activities/store/storekey", "switchyard/gateway/auth", "switchyard/gateway/nodeaccess", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runview", "switchyard/workflows/definition", "switchyard/workflows/nearest", "switchyard/workflows/secretref"}},
	{"gateway/notifications", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/notifications", "switchyard/activities/secrets/vault", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/workflows/names", "switchyard/workflows/nearest"}},
	{"gateway/runindex", []string{"switchyard/"}, []string{api, "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runview", "switchyard/workflows/names", "switchyard/workflows/visibility"}},
	{"gateway/runevents", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runindex", "switchyard/gateway/runview", "switchyard/activities/store", "switchyard/workflows/names"}},
	{"gateway/runlogs", []string{"switchyard/"}, []string{api, "switchyard/gateway/rpcerror", "switchyard/gateway/runview", "switchyard/activities/logs", "switchyard/activities/store", "switchyard/workflows/names"}},
	{"gateway/sse", []string{"switchyard/"}, []string{api, "switchyard/gateway/auth", "switchyard/gateway/edge", "switchyard/gateway/eventstream", "switchyard/gateway/rpcerror", "switchyard/gateway/runevents", "switchyard/gateway/runindex", "switchyard/gateway/runview", "switchyard/activities/store/storekey", "switchyard/workflows/names"}},
	{"gateway/eventstream", []string{"switchyard/", temporal}, nil},
	{"gateway/web", []string{"switchyard/", temporal}, []string{api, "switchyard/docs", "switchyard/drawing", "switchyard/gateway/auth", "switchyard/gateway/edge", "switchyard/gateway/eventstream", "switchyard/gateway/inprocess", "switchyard/gateway/rpcerror", "switchyard/gateway/web", "switchyard/workflows/cron", "switchyard/workflows/definition", "switchyard/workflows/names", "switchyard/workflows/nearest", "switchyard/workflows/phrase"}},
	{"gateway/web/ansi", []string{"switchyard/", temporal, "os", "net"}, nil},
	{"gateway/web/live", []string{"switchyard/", temporal}, []string{"switchyard/gateway/eventstream"}},
	{"gateway/web/login", []string{"switchyard/", temporal}, nil},
	{"gateway/environments", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/activities/executor", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runindex", "switchyard/gateway/runview", "switchyard/workflows/dataconverter", "switchyard/workflows/definition", "switchyard/workflows/names", "switchyard/workflows/nearest"}},
	{"gateway/vps", []string{"switchyard/", temporal}, []string{api, "switchyard/gateway/rpcerror", "switchyard/workflows/definition/source", "switchyard/workflows/names"}},
	{"gateway/tasklist", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runindex", "switchyard/gateway/runview", "switchyard/activities/placement", "switchyard/activities/registry", "switchyard/workflows/definition", "switchyard/workflows/names", "switchyard/workflows/phrase", "switchyard/workflows/policy", "switchyard/workflows/visibility"}},
	{"gateway/definitions", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/executor", "switchyard/activities/library", "switchyard/gateway/rpcerror", "switchyard/workflows/definition", "switchyard/workflows/nearest", "switchyard/workflows/policy"}},
	{"gateway/submission", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/activities/artifacts", "switchyard/activities/owners", "switchyard/activities/store", "switchyard/gateway/auth", "switchyard/gateway/definitions", "switchyard/gateway/rpcerror", "switchyard/gateway/runindex", "switchyard/gateway/runview", "switchyard/workflows/definition", "switchyard/workflows/names", "switchyard/workflows/visibility", "switchyard/workflows/structs"}},
	{"gateway/rundetails", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/activities/artifacts", "switchyard/activities/store", "switchyard/gateway/definitions", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runevents", "switchyard/gateway/runindex", "switchyard/gateway/runview", "switchyard/workflows/condition", "switchyard/workflows/names"}},
	{"gateway/runstreams", []string{"switchyard/"}, []string{api, "switchyard/activities/store", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runindex", "switchyard/gateway/runlogs", "switchyard/gateway/runview"}},
	{"gateway/runupdate", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/gateway/rpcerror", "switchyard/gateway/runview", "switchyard/workflows/names"}},
	{"gateway/runcommands", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/activities/signing", "switchyard/activities/store", "switchyard/gateway/auth", "switchyard/gateway/rpcerror", "switchyard/gateway/runindex", "switchyard/gateway/runupdate", "switchyard/gateway/runview", "switchyard/workflows/definition", "switchyard/workflows/names", "switchyard/workflows/phrase"}},
	{"gateway/runretry", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/activities/store", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runindex", "switchyard/gateway/runupdate", "switchyard/gateway/runview", "switchyard/gateway/submission", "switchyard/workflows/dataconverter", "switchyard/workflows/names", "switchyard/workflows/visibility"}},
	{"gateway/explanation", []string{"switchyard/"}, []string{"switchyard/proto", "switchyard/gateway/rpcerror", "switchyard/gateway/runevents", "switchyard/gateway/runindex", "switchyard/gateway/runview", "switchyard/gateway/submission", "switchyard/workflows/definition", "switchyard/workflows/names", "switchyard/workflows/phrase"}},
	{"gateway/blobs", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/artifacts", "switchyard/activities/environments", "switchyard/activities/executor", "switchyard/activities/logs", "switchyard/activities/store", "switchyard/gateway/nodeaccess", "switchyard/gateway/paging", "switchyard/gateway/rpcerror"}},
	{"gateway/nodes", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/activities/registry", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/workflows/names", "switchyard/workflows/policy"}},
	{"gateway/schedules", []string{"switchyard/"}, []string{api, "switchyard/activities/schedules", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/runview"}},
	{"gateway/tasks", []string{"switchyard/", temporal}, []string{"switchyard/proto", "switchyard/gateway/auth", "switchyard/gateway/definitions", "switchyard/gateway/rpcerror", "switchyard/gateway/singletask", "switchyard/gateway/submission", "switchyard/workflows/definition/source", "switchyard/workflows/names"}},
	{"gateway/workflows", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/library", "switchyard/gateway/definitions", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/schedules", "switchyard/gateway/submission", "switchyard/workflows/definition"}},
	{"gateway/tunnel", []string{"switchyard/"}, []string{api, "switchyard/activities/sessions", "switchyard/activities/signing", "switchyard/activities/store", "switchyard/gateway/audit", "switchyard/gateway/auth", "switchyard/gateway/nodeaccess", "switchyard/gateway/rpcerror", "switchyard/gateway/runindex", "switchyard/gateway/runview", "switchyard/workflows/names"}},
	{"gateway/export", []string{"switchyard/", temporal}, []string{api, "switchyard/activities/environments", "switchyard/activities/executor", "switchyard/activities/library", "switchyard/activities/secrets/vault", "switchyard/gateway/auth", "switchyard/gateway/paging", "switchyard/gateway/rpcerror", "switchyard/gateway/sshkeys", "switchyard/gateway/tokens", "switchyard/gateway/workflows"}},
	// Drawing shared by the terminal and the page knows neither the clock nor the network.
	{"drawing/words", []string{"switchyard/", temporal, "os", "net"}, []string{api}},
	{"drawing/timeline", []string{"switchyard/", temporal, "os", "net"}, []string{api, "switchyard/drawing/words", "switchyard/workflows/phrase"}},
	{"drawing/graph", []string{"switchyard/", temporal, "os", "net"}, []string{api, "switchyard/drawing/words"}},
	{"drawing/svg", []string{"switchyard/", temporal, "os", "net"}, []string{api, "switchyard/drawing", "switchyard/workflows/names"}},
	{"drawing/report", []string{"switchyard/", temporal, "os", "net"}, []string{api, "net/url", "switchyard/drawing", "switchyard/workflows/names"}},
	{"docs", []string{"switchyard/", temporal, "os"}, []string{"switchyard/docs", "switchyard/drawing/svg"}},
	{"cli/exit", []string{"switchyard/"}, nil},
	// Packages that deal with the terminal, files or ports of this machine do not know the gateway.
	{"cli/terminal", []string{"switchyard/", temporal}, nil},
	{"cli/archive", []string{"switchyard/", temporal}, nil},
	{"cli/portforward", []string{"switchyard/", temporal}, []string{"switchyard/activities/sessions/wire"}},
	{"cli/config", []string{"switchyard/"}, []string{"switchyard/workflows/nearest", api, "switchyard/cli/exit", "switchyard/workflows/definition"}},
	{"cli/doctor", []string{"switchyard/cli"}, []string{"switchyard/cli/client", "switchyard/cli/exit"}},
	{"cli/exportfile", []string{"switchyard/", temporal}, []string{api, "switchyard/workflows/definition"}},
	{"cli/stack", []string{"switchyard/cli"}, []string{"switchyard/cli/stack", "switchyard/cli/exit"}},
	{"cli/client", []string{"switchyard/"}, []string{api, "switchyard/activities/gatewayclient", "switchyard/activities/sessions/wire", "switchyard/cli/exit", "switchyard/cli/output", "switchyard/drawing/words", "switchyard/workflows/definition", "switchyard/workflows/names"}},
	{"cli/follow", []string{"switchyard/"}, []string{api, "switchyard/cli/client", "switchyard/cli/exit", "switchyard/cli/output", "switchyard/cli/tui", "switchyard/drawing/words", "switchyard/workflows/phrase"}},
	{"cli/output", []string{"switchyard/"}, []string{api, "switchyard/cli/exit", "switchyard/drawing/graph", "switchyard/drawing/words", "switchyard/workflows/nearest"}},
	{"dev/openapi", []string{"switchyard/", temporal}, []string{api}},
	{"dev/scriptedmodel", []string{"switchyard/", temporal, "github.com/anthropics", "github.com/openai"}, []string{"switchyard/dev/scriptedmodel"}},
	{"dev/sessiontest", []string{"switchyard/", temporal}, []string{"switchyard/activities/executor", "switchyard/dev/testneeds"}},
	{"dev/servicetest", []string{"switchyard/", temporal}, []string{api}},
	{"dev/guestimage", []string{"switchyard/", temporal}, []string{"switchyard/activities/filelock", "switchyard/dev/testneeds"}},
	{"dev/kubetest", []string{"switchyard/", temporal}, []string{"switchyard/activities/filelock", "switchyard/dev/kubetest", "switchyard/dev/testneeds"}},
	{"dev/browsertest", []string{"switchyard/", temporal}, []string{"switchyard/activities/filelock", "switchyard/dev/testneeds"}},
	{"dev/processes", []string{"switchyard/", temporal}, nil},
}

// reserved maps a prefix of import paths to the folder whose packages alone may import it outside tests.
var reserved = map[string]string{
	"switchyard/dev":        "switchyard/dev", // the product does not depend on the tools of its developers
	"go.temporal.io/server": "switchyard/workers/embedded",
}

// TestArrows checks that no package imports what arrows forbids, or what reserved keeps for others.
func TestArrows(t *testing.T) {
	for pkg, imports := range packages(t) {
		for _, imported := range imports {
			if isForTests(pkg) && strings.HasPrefix(imported, "switchyard/dev/") {
				continue
			}
			for _, arrow := range arrows {
				if covers([]string{"switchyard/" + arrow.from}, pkg) && covers(arrow.not, imported) && !covers(arrow.but, imported) {
					t.Errorf("%s imports %s", pkg, imported)
				}
			}
			for prefix, folder := range reserved {
				if covers([]string{prefix}, imported) && !covers([]string{folder}, pkg) {
					t.Errorf("%s imports %s, which only %s may import", pkg, imported, folder)
				}
			}
		}
	}
}

// isForTests reports whether a package helps tests, as its name says. Such a package may use the helpers in dev.
func isForTests(pkg string) bool {
	return strings.HasPrefix(pkg, "switchyard/") && strings.HasSuffix(pkg, "test")
}

// TestOnlyTestsImportTestPackages checks that packages for tests, such as workers/workertest, are imported by tests alone,
// by one another, and by the tools of dev.
func TestOnlyTestsImportTestPackages(t *testing.T) {
	for pkg, imports := range packages(t) {
		if isForTests(pkg) || strings.HasPrefix(pkg, "switchyard/dev/") {
			continue
		}
		for _, imported := range imports {
			if isForTests(imported) {
				t.Errorf("%s imports %s, which is for tests", pkg, imported)
			}
		}
	}
}

// TestDocsNameImports checks that the import list of a doc.go, where there is one, names every imported package of this
// module. A package stands for those below it, and packages below the importing one need no mention.
func TestDocsNameImports(t *testing.T) {
	lists := regexp.MustCompile(`(?i)\b(?:it|package|module it) (?:may import|imports) (?:everything)?`)
	named := regexp.MustCompile(`\b(proto|docs|(?:activities|cli|dev|docs|drawing|gateway|workers|workflows)(?:/[a-z0-9]+)+)\b`)
	for pkg, imports := range packages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(pkg, "switchyard"), "/")
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "doc.go"), nil, parser.ParseComments)
		if err != nil {
			continue // TestEveryPackageHasDoc reports it
		}
		doc := strings.Join(strings.Fields(file.Doc.Text()), " ")
		at := lists.FindStringIndex(doc)
		if at == nil || strings.HasSuffix(doc[:at[1]], "everything") {
			continue
		}
		allowed := append(named.FindAllString(doc[at[1]:], -1), dir)
		for _, imported := range imports {
			name, ours := strings.CutPrefix(imported, "switchyard/")
			if ours && !covers(allowed, name) {
				t.Errorf("%s/doc.go lists imports, and leaves out %s", dir, name)
			}
		}
	}
}

// covers reports whether a path is one of the prefixes or below it.
func covers(prefixes []string, path string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return path == p || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/")
	})
}

// TestEveryPackageHasDoc checks that each package has a doc.go with a package comment.
func TestEveryPackageHasDoc(t *testing.T) {
	for pkg := range packages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(pkg, "switchyard"), "/")
		if dir == "" || strings.HasSuffix(dir, "connect") { // main.go documents the root; connect is generated
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "doc.go")); err != nil {
			t.Errorf("package %s has no doc.go", pkg)
		}
	}
}

// TestNamesOfLongTests checks that a test has a long test's name, by which CI finds it, if and only if it calls
// testneeds.Long, which skips the test elsewhere.
func TestNamesOfLongTests(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && strings.HasPrefix(f.Name.Name, "TestLong") != callsLong(f) {
				t.Errorf("%s: %s: the name of a test begins with TestLong if, and only if, it calls testneeds.Long", path, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// callsLong reports whether a function calls testneeds.Long itself.
func callsLong(f *ast.FuncDecl) bool { return callsTestNeed(f, "Long") }

// callsTestNeed reports whether code calls a function of package testneeds.
func callsTestNeed(code ast.Node, name string) bool {
	found := false
	ast.Inspect(code, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if ok && selector.Sel.Name == name {
			pkg, ok := selector.X.(*ast.Ident)
			found = found || ok && pkg.Name == "testneeds"
		}
		return !found
	})
	return found
}

// engineTags maps a build tag of tests that need more than Go to the end of the names of such files.
var engineTags = map[string]string{"engines": "_engine", "kubernetes": "_kubernetes"}

// engineHelpers are the packages that start what needs more than Go.
var engineHelpers = []string{
	"switchyard/dev/kubetest", "switchyard/dev/guestimage", "switchyard/dev/browsertest", "switchyard/activities/executor/container/enginetest",
}

// TestOnlyTaggedTestsNeedEngines checks that a test which needs more than Go is in a file with the build tag of its layer,
// and that the name of the file shows it.
func TestOnlyTaggedTestsNeedEngines(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(path, "_test.go"), "_linux"), "_unix")
		tag := engineTag(t, file)
		for other, suffix := range engineTags {
			if (other == tag) != strings.HasSuffix(base, suffix) {
				t.Errorf("%s: the name of a test file ends in %s_test.go if, and only if, it has the build tag %s", path, suffix, other)
			}
		}
		if tag != "" {
			return nil
		}
		if callsTestNeed(file, "Missing") {
			t.Errorf("%s: a test that calls testneeds.Missing needs a build tag", path)
		}
		for _, spec := range file.Imports {
			if imported := strings.Trim(spec.Path.Value, `"`); slices.Contains(engineHelpers, imported) {
				t.Errorf("%s: a test that uses %s needs a build tag", path, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// engineTag returns the tag of engineTags without which a file is not built, or "".
func engineTag(t *testing.T, file *ast.File) string {
	t.Helper()
	for _, group := range file.Comments {
		for _, line := range group.List {
			if group.Pos() > file.Package || !constraint.IsGoBuild(line.Text) {
				continue
			}
			expr, err := constraint.Parse(line.Text)
			if err != nil {
				t.Fatal(err)
			}
			for tag := range engineTags {
				for _, others := range []bool{false, true} {
					with := expr.Eval(func(t string) bool { return others || t == tag })
					without := expr.Eval(func(t string) bool { return others && t != tag })
					if with && !without {
						return tag
					}
				}
			}
		}
	}
	return ""
}

// packages returns the packages of the module with what each imports.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		found[fields[0]] = fields[1:]
	}
	return found
}

// TestDocumentsNameWhatIsThere checks that each path in the documents for contributors exists, and that ARCHITECTURE.md
// names every folder of Go code that is not a detail of another folder.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	path := regexp.MustCompile("`((?:activities|cli|dev|docs|drawing|gateway|proto|workers|workflows|\\.ci)(?:/[A-Za-z0-9_.-]+)*)(?:`| )")
	named := map[string]bool{}
	for _, document := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range path.FindAllStringSubmatch(string(text), -1) {
			named[found[1]] = true
			if _, err := os.Stat(found[1]); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
	for pkg := range packages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(pkg, "switchyard"), "/")
		inside := false
		for at := dir; at != "."; at = filepath.Dir(at) {
			// Parts of an executor, of the client or of the test helpers are described with their parent folder.
			inside = inside || named[at] && (at == dir || strings.Count(at, "/") > 0 || at == "gateway" || at == "cli")
		}
		if !inside && dir != "" && !strings.HasPrefix(dir, "proto") {
			t.Errorf("ARCHITECTURE.md does not name %s", dir)
		}
	}
}

// TestExportedNamesHaveComments checks that each exported name of a package has a comment, its own or that of its group.
func TestExportedNamesHaveComments(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		for _, decl := range file.Decls {
			for _, name := range uncommented(decl) {
				t.Errorf("%s: %s has no comment", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// uncommented returns the exported names of a declaration without a comment. It skips methods of unexported types.
func uncommented(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if d.Doc == nil && s.Doc == nil && s.Name.IsExported() {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if d.Doc == nil && s.Doc == nil && s.Comment == nil && name.IsExported() {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// receiver returns the type name of a receiver.
func receiver(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
