package main

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"switchyard/dev/scriptedmodel"
)

// provider is a scripted model on the loopback interface.
type provider struct {
	url      string
	server   *http.Server
	model    *scriptedmodel.Server
	answered atomic.Int64 // nanoseconds that requests have spent in the provider
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
	}
	go func() { _ = p.server.Serve(listener) }() // ends when the provider stops
	return p, nil
}

func (p *provider) stop() { _ = p.server.Close() }

// agentScript makes an agent take the given number of turns, the last of which is its answer. Each earlier reply makes
// the call, or is cut off if call is nil.
func agentScript(turns int, call *scriptedmodel.ToolCall, pace scriptedmodel.Pace) scriptedmodel.Script {
	before := turns - 1
	next := scriptedmodel.Reply{Text: "I have looked at one more of the files, and will look at the next.", StopReason: scriptedmodel.StopMaxTokens}
	if call != nil {
		next.StopReason, next.ToolCalls = "", []scriptedmodel.ToolCall{*call}
	}
	return scriptedmodel.Script{Rules: []scriptedmodel.Rule{
		{When: scriptedmodel.When{Turns: &before}, Pace: pace, Reply: scriptedmodel.Reply{Text: "All files are fine."}},
		{Pace: pace, Reply: next},
	}}
}
