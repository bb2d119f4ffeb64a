package subagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/model"
	"switchyard/activities/executor/subagent/session"
	"switchyard/activities/executor/subagent/tool"
	"switchyard/activities/executor/subagent/tool/fleet"
	"switchyard/activities/executor/subagent/tool/mcptool"
	"switchyard/activities/hostlist"
	v1 "switchyard/proto/switchyard/v1"
)

// toolbox holds the tools of an agent and the directory that they work in. The zero value has no tools.
type toolbox struct {
	tree    *tool.Tree // nil if no tool works in a directory
	byName  map[string]tool.Tool
	models  []model.Tool
	saved   string // fingerprint of the directory when it was last archived
	tooBig  bool   // the directory is too large to archive, and the log reports that
	closers []func() error
}

func (t *toolbox) hasFiles() bool { return t.tree != nil }

// open creates the tools. If an earlier attempt archived a directory, open restores it.
func (t *toolbox) open(ctx context.Context, l *loop, continues bool) error {
	t.byName = map[string]tool.Tool{}
	spec := l.spec
	wants := func(name string) bool { return slices.Contains(spec.GetTools(), name) }
	if wants(v1.AgentToolShell) || wants(v1.AgentToolFiles) {
		if err := t.openTree(ctx, l, continues); err != nil {
			return err
		}
	}
	if wants(v1.AgentToolFiles) {
		t.add(tool.Files(t.tree)...)
	}
	if wants(v1.AgentToolShell) {
		shell := tool.NewShell(t.tree, tool.ShellOptions{
			Attempt: l.a, Sandbox: l.e.o.Shell, Image: spec.GetImage(), Container: l.e.o.Container,
			NodeNetwork: spec.GetNetwork() == "node", Output: &l.printed,
		})
		t.closers = append(t.closers, shell.Close)
		if err := shell.Check(ctx); err != nil {
			return cannotStart(err)
		}
		t.add(shell)
	}
	if wants(v1.AgentToolFetch) {
		for _, host := range spec.GetFetchHosts() {
			if err := hostlist.Check(host); err != nil {
				return badSpec(fmt.Errorf("subagent spec: fetchHosts: %w", err))
			}
		}
		t.add(tool.NewFetch(tool.FetchOptions{Task: spec.GetFetchHosts(), Node: l.e.o.FetchHosts}))
	}
	if wants(v1.AgentToolFleet) {
		if err := t.openFleet(ctx, l); err != nil {
			return cannotStart(err)
		}
	}
	if len(spec.GetMcpServers()) > 0 {
		return t.openServers(ctx, l)
	}
	return nil
}

// openFleet connects to the gateway that the task names, or else to that of the node.
func (t *toolbox) openFleet(ctx context.Context, l *loop) error {
	id := l.a.Identity
	plain := maps.Clone(l.a.Env)
	maps.DeleteFunc(plain, func(name, _ string) bool {
		_, isSecret := l.a.Secrets.Env[name]
		return isSecret || strings.HasPrefix(name, "SWITCHYARD_") || name == "TMPDIR"
	})
	connection, err := fleet.New(ctx, fleet.Options{
		Gateway: cmp.Or(l.a.Env["SWITCHYARD_GATEWAY"], l.e.o.Gateway()), Token: l.a.Env["SWITCHYARD_TOKEN"], Run: id.Run, Task: id.Task,
		KeyPrefix: fmt.Sprintf("%s/%s/%d", id.Run, id.Task, id.Index), Defaults: l.spec, SecretEnv: l.a.Secrets.Env, Env: plain,
	})
	if err != nil {
		return err
	}
	t.closers = append(t.closers, connection.Close)
	t.add(connection.Tools()...)
	return nil
}

// openServers connects to the MCP servers of the task.
func (t *toolbox) openServers(ctx context.Context, l *loop) error {
	env := maps.Clone(l.a.Env)
	for _, provider := range v1.Providers() {
		delete(env, v1.KeyVariable(provider)) // no server gets the keys of models
	}
	servers, err := mcptool.Connect(ctx, l.spec.GetMcpServers(), mcptool.Options{Shell: l.e.o.Shell, Attempt: l.a, Env: env, Log: l.notify})
	if err != nil {
		return cannotStart(err)
	}
	t.closers = append(t.closers, servers.Close)
	t.add(servers.Tools()...)
	return nil
}

// openTree creates the directory and restores what an earlier attempt archived.
func (t *toolbox) openTree(ctx context.Context, l *loop, continues bool) (err error) {
	if t.tree, err = tool.NewTree(l.a.Dirs.Workspace); err != nil {
		return err
	}
	if continues && l.a.Journal != nil {
		archive, err := l.a.Journal.Archive(ctx)
		if err != nil {
			return fmt.Errorf("restore the directory of the agent: %w", err)
		}
		if archive != nil {
			if err := tool.Unpack(t.tree.Path(), archive); err != nil {
				return fmt.Errorf("restore the directory of the agent: %w", err)
			}
		}
	}
	t.saved, err = tool.Fingerprint(t.tree.Path())
	return err
}

func (t *toolbox) add(tools ...tool.Tool) {
	for _, one := range tools {
		d := one.Definition()
		t.byName[d.Name] = one
		t.models = append(t.models, model.Tool{Name: d.Name, Description: d.Description, Schema: d.Schema})
	}
}

func (t *toolbox) close() error {
	var errs []error
	for _, closer := range slices.Backward(t.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// names returns a phrase with the names of all tools, for the model.
func (t *toolbox) names() string {
	if len(t.models) == 0 {
		return "no tools are available"
	}
	names := make([]string, len(t.models))
	for i, one := range t.models {
		names[i] = one.Name
	}
	return "available tools: " + strings.Join(names, ", ")
}

// archive saves the directory if it has changed. A directory that is too large is not saved, which loses its content if
// the node is lost. The log reports that once.
func (t *toolbox) archive(ctx context.Context, l *loop) error {
	if t.tree == nil || l.a.Journal == nil {
		return nil
	}
	now, err := tool.Fingerprint(t.tree.Path())
	if err != nil || now == t.saved {
		return err
	}
	data, err := tool.Pack(t.tree.Path(), executor.MaxJournalArchive)
	if tooLarge, ok := errors.AsType[*tool.TooLargeError](err); ok {
		if !t.tooBig {
			l.notify(fmt.Sprintf("the directory of the agent is not saved for another node: %v", tooLarge))
		}
		t.tooBig, t.saved = true, now
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.a.Journal.SaveArchive(ctx, data); err != nil {
		return err
	}
	t.tooBig, t.saved = false, now
	return nil
}

// call runs a call to its end and records both its start and its end.
func (l *loop) call(ctx context.Context, c session.Call) error {
	end := func(at time.Time, o tool.Outcome) error {
		if l.a.Secrets.Mask != nil {
			o.Text = l.a.Secrets.Mask(o.Text)
		}
		return l.add(context.WithoutCancel(ctx), session.Entry{Ended: &session.CallEnded{
			CallResult: model.CallResult{ID: c.ID, Text: o.Text, IsError: o.IsError}, TookMs: time.Since(at).Milliseconds(),
		}})
	}
	now := time.Now()
	chosen := l.tools.byName[c.Name]
	switch {
	case c.Began != nil:
		l.notify(fmt.Sprintf("the outcome of a call to %s on node %s is unknown; the call is not repeated", c.Name, c.Began.Node))
		return end(now, tool.Outcome{Text: unknownOutcome(c), IsError: true})
	case chosen == nil:
		return end(now, tool.Outcome{Text: fmt.Sprintf("Unknown tool %q; %s.", c.Name, l.tools.names()), IsError: true})
	case c.Broken != "":
		return end(now, tool.Outcome{Text: "The arguments are not a JSON object, so nothing was called. Call again with valid JSON.", IsError: true})
	}
	if err := l.add(ctx, session.Entry{Began: &session.CallBegan{ID: c.ID, Node: l.a.Identity.Node, At: now}}); err != nil {
		return err
	}
	l.notify(fmt.Sprintf("%s %s", c.Name, arguments(c.Arguments)))
	outcome, err := chosen.Call(ctx, tool.Call{ID: c.ID, Arguments: c.Arguments})
	l.printed.endLine()
	if err != nil {
		return wrapFault("call "+c.Name, err)
	}
	// Changes to the directory are saved before the end of the call is recorded: if the node is lost in between, the
	// outcome is unknown.
	if err := l.tools.archive(context.WithoutCancel(ctx), l); err != nil {
		return err
	}
	return end(now, outcome)
}
