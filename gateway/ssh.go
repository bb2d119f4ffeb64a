package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/caller"
	"switchyard/activities/sessions/wire"
	"switchyard/gateway/auth"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	"switchyard/gateway/sshdoor"
	"switchyard/gateway/tunnel"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/sshkey"
)

// listenSSH opens the port for SSH clients, and records it for callers who ask how to reach a machine.
func (g *Gateway) listenSSH(ctx context.Context) (*sshdoor.Door, error) {
	key, err := sshdoor.HostKey(ctx, g.config.Store)
	if err != nil {
		return nil, err
	}
	door, err := sshdoor.Listen(ctx, g.config.SSHAddress, sshdoor.Config{
		HostKey: key, Runs: sshRuns{g.index, g.reader, g.tunnel}, Keys: g.keys, Locked: g.config.Authenticator != nil, Enter: g.insideOf, Logger: g.config.Logger,
		OnLogin: func(ctx context.Context, p *auth.Principal, from net.Addr, run, task string) {
			g.recorder.RecordLogin(auth.With(ctx, p), from.String(), run, task)
		},
		OnRefused: func(from net.Addr, user string, key ssh.PublicKey, reason error) {
			g.recorder.NoteRefusedLogin(ctx, from.String(), user, ssh.FingerprintSHA256(key), reason)
		},
	})
	if err != nil {
		return nil, err
	}
	if g.config.SSHPort == 0 {
		_, port, _ := net.SplitHostPort(door.Address())
		g.config.SSHPort, _ = strconv.Atoi(port) // the address of a listener always has a port
	}
	return door, nil
}

// insideOf returns the inside of a task for an SSH client. Its streams are opened in the name of the principal.
func (g *Gateway) insideOf(p *auth.Principal, from net.Addr, run, task string) executor.Inside {
	return caller.New(func(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
		h.RunId, h.Task = run, task
		conn, reply, err := g.tunnel.Open(tunnel.WithAddress(auth.With(ctx, p), from.String()), h)
		if coded, ok := errors.AsType[*connect.Error](err); ok {
			err = errors.New(coded.Message()) // Connect codes mean nothing to SSH clients
		}
		return conn, reply, err
	})
}

// sshRuns finds the runs that SSH clients name.
type sshRuns struct {
	index  *runindex.Index
	reader *runview.Reader
	tunnel *tunnel.Hub
}

var _ sshdoor.Runs = sshRuns{}

// Resolve returns the id of the run that a text names for the caller of ctx.
func (s sshRuns) Resolve(ctx context.Context, text string) (string, error) {
	return s.index.Resolve(ctx, text)
}

// Find returns a run.
func (s sshRuns) Find(ctx context.Context, id string) (sshdoor.Run, error) {
	desc, err := s.reader.Describe(ctx, id)
	if err != nil {
		return sshdoor.Run{}, fmt.Errorf("look for run %s: %w", id, err)
	}
	info := desc.GetWorkflowExecutionInfo()
	return sshdoor.Run{ID: id, Owner: runindex.OwnerOf(info), Open: runview.IsOpen(info.GetStatus())}, nil
}

// TaskKeys returns the SSH keys of the machines of a run. They come from the definition, or from the node of a machine if the
// definition makes them with templates.
func (s sshRuns) TaskKeys(ctx context.Context, id string) (map[string]string, error) {
	desc, err := s.reader.Describe(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look for run %s: %w", id, err)
	}
	in, err := s.reader.DefinedInput(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return nil, fmt.Errorf("read the definition of run %s: %w", id, err)
	}
	keys, made := map[string]string{}, map[string]bool{}
	for name, task := range v1.AllTasks(in.GetDefinition()) {
		text := task.GetSpec().GetFields()["sshPublicKey"].GetStringValue()
		if task.GetType() != v1.TypeVPS || text == "" {
			continue
		}
		if _, fault := sshkey.Parse(text); fault != nil { // a template is not a key
			made[name] = true
			continue
		}
		keys[name] = text
	}
	if len(made) == 0 {
		return keys, nil
	}
	found, err := s.tunnel.LoginKeys(ctx, desc)
	if err != nil {
		return nil, fmt.Errorf("look for the machines of run %s: %w", id, err)
	}
	for name, text := range found {
		task, _, isInstance := names.ParseInstanceName(name)
		if made[name] || isInstance && made[task] {
			keys[name] = text
		}
	}
	return keys, nil
}

// Starting returns the ids of at most the given number of open runs with machines that start with prefix, regardless of their
// owner.
func (s sshRuns) Starting(ctx context.Context, prefix string, most int) ([]string, error) {
	return s.index.OpenOfType(ctx, v1.TypeVPS, prefix, most)
}
