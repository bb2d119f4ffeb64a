package main

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"switchyard/dev/scriptedmodel"
	v1 "switchyard/proto/switchyard/v1"
)

// agentModel is the model that agents name. Its provider follows a script.
const agentModel = v1.DefaultAgentModel

// provider is a scripted model on the loopback interface.
type provider struct {
	url      string
	server   *http.Server
	model    *scriptedmodel.Server
	answered atomic.Int64 // nanoseconds that requests have spent in the provider
	conns    atomic.Int64 // number of connections that clients have opened
}

// startProvider serves a script. The first request to a provider is slower than later ones.
func startProvider(script scriptedmodel.Script) (*provider, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{url: "http://" + listener.Addr().String(), model: scriptedmodel.New(script)}
	p.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			defer func() { p.answered.Add(int64(time.Since(began))) }()
			p.model.ServeHTTP(w, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				p.conns.Add(1)
			}
		},
	}
	go func() { _ = p.server.Serve(listener) }() // ends when the provider stops
	return p, nil
}

func (p *provider) stop() { _ = p.server.Close() }

// took returns how long requests have spent in the provider so far.
func (p *provider) took() time.Duration { return time.Duration(p.answered.Load()) }

// agentScript makes an agent take the given number of turns, the last of which is its answer. Each earlier reply makes
// the call, or is cut off if call is nil.
func agentScript(turns int, call *scriptedmodel.ToolCall, estimate scriptedmodel.Pace) scriptedmodel.Script {
	before := turns - 1
	next := scriptedmodel.Reply{Text: "I have looked at one more of the files, and will look at the next.", StopReason: scriptedmodel.StopMaxTokens}
	if call != nil {
		next.StopReason, next.ToolCalls = "", []scriptedmodel.ToolCall{*call}
	}
	return scriptedmodel.Script{Rules: []scriptedmodel.Rule{
		{When: scriptedmodel.When{Turns: &before}, Pace: estimate, Reply: scriptedmodel.Reply{Text: "All files are fine."}},
		{Pace: estimate, Reply: next},
	}}
}
