package mcptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/tool"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// connectLimit bounds how long a server may take to start, initialize and list its tools.
	connectLimit = 30 * time.Second
	// callLimit bounds how long a call may take.
	callLimit = 10 * time.Minute
	// maxTools bounds the tools of one server.
	maxTools = 512
)

// Options configure the connections to servers.
type Options struct {
	// Shell starts the servers that are programs.
	Shell executor.Executor
	// Attempt is the attempt of the agent. The attempts of its servers have the same limits, lease, grace period and
	// directories. Of its Env, the servers get only TMPDIR.
	Attempt executor.Attempt
	// Dir is the working directory of programs. If it is empty, they start in BaseDir of the attempt.
	Dir string
	// Env holds the task's variables that $NAME refers to, including secrets.
	Env map[string]string
	// Log receives, one line per call, what servers print on standard error and any output that is not part of the
	// protocol. Calls are sequential. It may be nil.
	Log func(line string)
	// Plain omits the names of servers from the names of their tools.
	Plain bool
	// Transport carries the requests to HTTP servers. If it is nil, http.DefaultTransport is cloned.
	Transport http.RoundTripper

	connectLimit, callLimit, stopLimit time.Duration // zero means the constant
}

func (o Options) withDefaults() Options {
	o.connectLimit = cmp.Or(o.connectLimit, connectLimit)
	o.callLimit = cmp.Or(o.callLimit, callLimit)
	o.stopLimit = cmp.Or(o.stopLimit, stopLimit)
	var mu sync.Mutex
	log := o.Log
	o.Log = func(line string) {
		if log != nil {
			mu.Lock()
			defer mu.Unlock()
			log(line)
		}
	}
	return o
}

// Servers are connected servers. The caller must call Close.
type Servers struct {
	servers []*server
	tools   []tool.Tool
	end     context.CancelFunc
}

// Connect connects to all servers concurrently and lists their tools. If it fails, the error names each server that
// could not be reached, and all connections are closed.
func Connect(ctx context.Context, servers map[string]*v1.McpServer, o Options) (*Servers, error) {
	o = o.withDefaults()
	ending, end := context.WithCancel(context.Background())
	all := &Servers{end: end}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s, err := newServer(ending, name, servers[name], o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all.servers = append(all.servers, s)
	}
	if len(errs) > 0 {
		end()
		return nil, errors.Join(errs...)
	}
	listed := make([][]*sdk.Tool, len(all.servers))
	errs = make([]error, len(all.servers))
	var wg sync.WaitGroup
	for i, s := range all.servers {
		wg.Go(func() { listed[i], errs[i] = s.list(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, all.Close())
	}
	names := toolNames{}
	for i, s := range all.servers {
		for _, t := range listed[i] {
			made, err := newServerTool(s, names.unique(s.name, t.Name, o.Plain), t)
			if err != nil {
				return nil, errors.Join(err, all.Close())
			}
			all.tools = append(all.tools, made)
		}
	}
	return all, nil
}

// Tools returns the tools of all servers, sorted by server and name.
func (s *Servers) Tools() []tool.Tool { return slices.Clone(s.tools) }

// Close ends calls and connections, and returns when nothing of the programs is left. A second Close is a no-op.
func (s *Servers) Close() error {
	s.end()
	errs := make([]error, len(s.servers))
	var wg sync.WaitGroup
	for i, each := range s.servers {
		wg.Go(func() { errs[i] = each.close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// allow returns the tools of a server that the task names, or all tools if the task names none.
func allow(server string, all []*sdk.Tool, names []string) ([]*sdk.Tool, error) {
	slices.SortFunc(all, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b *sdk.Tool) bool { return a.Name == b.Name })
	if len(names) == 0 {
		return all, nil
	}
	var has, missing []string
	for _, t := range all {
		has = append(has, t.Name)
	}
	for _, name := range names {
		if !slices.Contains(has, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("MCP server %q has no tool %s (available: %s)", server, strings.Join(missing, ", "), cmp.Or(strings.Join(has, ", "), "none"))
	}
	return slices.DeleteFunc(all, func(t *sdk.Tool) bool { return !slices.Contains(names, t.Name) }), nil
}
