package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/gateway"
	"switchyard/gateway/tokens"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	// lockedClients call a gateway concurrently, each once per askInterval, for askTime.
	lockedClients        = 200
	askInterval, askTime = time.Second, 10 * time.Second
)

// benchAuth measures the cost of tokens: the same calls to a gateway that requires them and to one that does not, in
// alternation.
func benchAuth(ctx context.Context, y *cluster, open string, rounds int) error {
	registry := tokens.NewRegistry(y.store, time.Now)
	secret, _, err := registry.Create(ctx, &v1.Token{Name: "bench", Role: v1.RoleOperator}, time.Hour)
	if err != nil {
		return err
	}
	authenticator := tokens.NewAuthenticator(registry, slog.New(slog.DiscardHandler))
	defer authenticator.Close()
	g, err := gateway.New(gateway.Config{Client: y.conn.Client, Store: y.store, Tokens: registry, Authenticator: authenticator})
	if err != nil {
		return err
	}
	server, err := g.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	y.onClose(server.Close)
	run, err := y.submit(ctx, wideDefinition(1))
	if err != nil {
		return err
	}
	if _, err := y.await(ctx, run, time.Now()); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: lockedClients}}
	defer client.CloseIdleConnections()
	call := func(url, token, procedure, body string) func() (*http.Request, error) {
		return func() (*http.Request, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+procedure, strings.NewReader(body))
			if err == nil {
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Connect-Protocol-Version", "1")
				if token != "" {
					req.Header.Set("Authorization", "Bearer "+token)
				}
			}
			return req, err
		}
	}
	get := fmt.Sprintf(`{"id":%q}`, run.GetID())
	submit := `{"document":"name: locked\ntasks: { a: { type: shell, spec: { command: 'true' }, resources: { cores: 0 } } }\n"}`
	fmt.Println("| call | with tokens | without | ratio |")
	fmt.Println("|---|--:|--:|--:|")
	for _, test := range []struct{ name, procedure, body string }{
		{"get", switchyardv1connect.RunServiceGetRunProcedure, get}, {"submit", switchyardv1connect.RunServiceSubmitRunProcedure, submit},
	} {
		var locked, plain []time.Duration
		for k := range (rounds + 1) * doorCalls {
			var took [2]time.Duration
			for turn := range took {
				with := (k + turn) % 2 // alternates which one is first
				url, token := server.URL(), secret
				if with == 1 {
					url, token = open, ""
				}
				var err error
				if took[with], _, err = timeRequest(client, call(url, token, test.procedure, test.body)); err != nil {
					return err
				}
			}
			if k >= doorCalls { // the first round warms the caches
				locked, plain = append(locked, took[0]), append(plain, took[1])
			}
		}
		a, b := median(locked), median(plain)
		fmt.Printf("| %s | %s | %s | %.2f |\n", test.name, a.Round(10*time.Microsecond), b.Round(10*time.Microsecond), a.Seconds()/b.Seconds())
		if test.name == "get" {
			all, err := askTogether(client, call(server.URL(), secret, test.procedure, test.body))
			if err != nil {
				return err
			}
			p99 := all[len(all)*99/100]
			fmt.Printf("| get, %d clients once a second: p99 of %d calls, and the median of one client | %s | %s | %.2f |\n", lockedClients, len(all), p99.Round(10*time.Microsecond), a.Round(10*time.Microsecond), p99.Seconds()/a.Seconds())
		}
	}
	return nil
}

// askTogether makes many clients send a request repeatedly, and returns the sorted times.
func askTogether(client *http.Client, request func() (*http.Request, error)) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failure error
	var clients sync.WaitGroup
	for k := range lockedClients {
		clients.Go(func() {
			time.Sleep(askInterval * time.Duration(k) / lockedClients)
			estimate := time.NewTicker(askInterval)
			defer estimate.Stop()
			for began := time.Now(); time.Since(began) < askTime; <-estimate.C {
				took, _, err := timeRequest(client, request)
				mu.Lock()
				if all = append(all, took); err != nil {
					failure = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	clients.Wait()
	slices.Sort(all)
	return all, failure
}
