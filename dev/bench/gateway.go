package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"switchyard/gateway"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// gatewayShape is the -shape that measures the APIs of the gateway.
const gatewayShape = "gateway"

// doorCalls is the number of calls to each API in a round.
const doorCalls = 200

// benchGateway runs the gateway measurements whose name contains a text: calls to its APIs, and streams.
func benchGateway(ctx context.Context, rounds int, only string) error {
	if strings.Contains("calls", only) {
		if err := withGateway(ctx, func(y *cluster, url string) error { return benchDoors(ctx, y, url, rounds) }); err != nil {
			return err
		}
	}
	if strings.Contains("tokens", only) {
		if err := withGateway(ctx, func(y *cluster, url string) error { return benchAuth(ctx, y, url, rounds) }); err != nil {
			return fmt.Errorf("ask with tokens: %w", err)
		}
	}
	if strings.Contains("agents", only) {
		if err := withGateway(ctx, func(y *cluster, url string) error { return benchAgents(ctx, y, url, rounds) }); err != nil {
			return fmt.Errorf("ask as an agent: %w", err)
		}
	}
	if strings.Contains("audit", only) {
		if err := withGateway(ctx, func(y *cluster, url string) error { return benchAudit(ctx, y, url, rounds) }); err != nil {
			return fmt.Errorf("record submits: %w", err)
		}
	}
	if strings.Contains("followers", only) {
		if err := benchFollowers(ctx, eventFollowers); err != nil {
			return fmt.Errorf("follow a busy run: %w", err)
		}
	}
	if strings.Contains("viewers", only) {
		if err := benchFollowers(ctx, pageViewers); err != nil {
			return fmt.Errorf("look at a busy run: %w", err)
		}
	}
	return nil
}

// withGateway calls do with a cluster and the URL of its gateway.
func withGateway(ctx context.Context, do func(y *cluster, url string) error) (err error) {
	y, err := openCluster(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.close()) }()
	g, err := gateway.New(gateway.Config{Client: y.conn.Client, Store: y.store})
	if err != nil {
		return err
	}
	server, err := g.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	y.onClose(server.Close)
	return do(y, server.URL())
}

// benchDoors measures calls to the gateway's APIs.
func benchDoors(ctx context.Context, y *cluster, url string, rounds int) error {
	fmt.Println("| call | REST | Connect, JSON | ratio | size of the answers |")
	fmt.Println("|---|--:|--:|--:|--:|")
	for _, tasks := range []int{1, 100, 1000} {
		if err := benchGetRun(ctx, y, url, tasks, rounds); err != nil {
			return fmt.Errorf("get a run of %d tasks: %w", tasks, err)
		}
	}
	return nil
}

// benchGetRun prints the time to get an ended run, alternating between REST and Connect.
func benchGetRun(ctx context.Context, y *cluster, url string, tasks, rounds int) error {
	run, err := y.submit(ctx, wideDefinition(tasks))
	if err != nil {
		return err
	}
	if _, err := y.await(ctx, run, time.Now()); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	rest := func() (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/runs/"+run.GetID(), nil)
	}
	rpc := func() (*http.Request, error) {
		body := strings.NewReader(fmt.Sprintf(`{"id":%q}`, run.GetID()))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+switchyardv1connect.RunServiceGetRunProcedure, body)
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Connect-Protocol-Version", "1")
		}
		return req, err
	}
	var ours, theirs []time.Duration
	var ourSize, theirSize int64
	for call := range (rounds + 1) * doorCalls {
		a, n, err := timeRequest(client, rest)
		if err != nil {
			return err
		}
		b, m, err := timeRequest(client, rpc)
		if err != nil {
			return err
		}
		if call >= doorCalls { // the first round warms the caches
			ours, theirs = append(ours, a), append(theirs, b)
		}
		ourSize, theirSize = n, m
	}
	a, b := median(ours), median(theirs)
	fmt.Printf("| a run of %d tasks | %s | %s | %.2f | %d and %d KiB |\n", tasks,
		a.Round(10*time.Microsecond), b.Round(10*time.Microsecond), a.Seconds()/b.Seconds(), ourSize>>10, theirSize>>10)
	return nil
}

// timeRequest sends a request. It returns the time until the response has been read, and the size of the response.
func timeRequest(client *http.Client, request func() (*http.Request, error)) (time.Duration, int64, error) {
	req, err := request()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	size, err := io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", req.Method, req.URL, res.Status)
	}
	return time.Since(began), size, err
}
