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
	// connectLimit bounds how long a server may take to start, to initialize and to list its tools.
	connectLimit = 30 * time.Second
	// callLimit bounds how long a call may take.
	callLimit = 10 * time.Minute
	// maxTools bounds the tools of one server.
	maxTools = 512
)

// Options say how servers are reached.
type Options struct {
	// Shell starts the servers that are programs.
	Shell executor.Executor
	// Attempt is the attempt of the agent, from which those of its servers are made: limits, lease, grace period and
	// directories are the same. Of its Env they only get TMPDIR.
	Attempt executor.Attempt
	// Dir is where programs start; empty: in BaseDir of the attempt.
	Dir string
	// Env has the variables of the task, secret ones included, that $NAME stands for.
	Env map[string]string
	// Log takes what servers print on standard error, and what does not belong to the protocol, a line each, from one
	// goroutine at a time. nil: it is dropped.
	Log func(line string)
	// Plain leaves the names of servers out of those of their tools.
	Plain bool
	// Transport carries the requests to servers over HTTP; nil: one like http.DefaultTransport.
	Transport http.RoundTripper

	connectLimit, callLimit, stopLimit time.Duration // zero: the constants
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

// Servers are connected servers. Close must be called.
type Servers struct {
	servers []*server
	tools   []tool.Tool
	end     context.CancelFunc
}

// Connect connects to all servers at once and lists their tools. An error names each server that could not be reached, and
// nothing of the others is left.
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

// Tools returns the tools of all servers, by server and name.
func (s *Servers) Tools() []tool.Tool { return slices.Clone(s.tools) }

// Close ends calls and connections, and returns when nothing of the programs is left. A second call does nothing.
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

// allow returns those tools of a server that the task names, or all if it names none.
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
		return nil, fmt.Errorf("the MCP server %q has no tool %s; it has %s", server, strings.Join(missing, ", "), cmp.Or(strings.Join(has, ", "), "none"))
	}
	return slices.DeleteFunc(all, func(t *sdk.Tool) bool { return !slices.Contains(names, t.Name) }), nil
}
