package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// following is a way to follow a run.
type following struct {
	who    string
	n      int                     // number of clients
	path   func(run string) string // path of the stream
	update string                  // prefix of the first line of an update
}

// eventFollowers follow the events of a run. pageViewers watch its live page.
var (
	eventFollowers = following{"followers", 500, func(run string) string { return "/v1/runs/" + run + "/events?follow=true" }, "id:"}
	pageViewers    = following{"viewers of its page", 100, func(run string) string { return "/ui/live?view=/ui/runs/" + run + "&at=" }, "event: view"}
)

const (
	// followersEach is the number of followers from one address. A gateway accepts 256 streams from each.
	followersEach = 250
	// maxUpdate bounds the lines of an update, in bytes.
	maxUpdate = 8 << 20
	// followedFor is how long the gateway is measured.
	followedFor = 30 * time.Second
)

// benchFollowers prints what the followers of one busy run cost their gateway, compared with the same run without them.
// The gateway is a separate, read-only process, so that it does no other work.
func benchFollowers(ctx context.Context, by following) (err error) {
	binary, dir, err := buildBinary(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kept := filepath.Join(dir, "store")
	dev, err := startProcess(ctx, "Gateway", os.Environ(), binary, "dev", "--nodes", "1", "--port", "0", "--gateway-port", "0", "--ui-port", "0", "--store", kept)
	if err != nil {
		return err
	}
	defer dev.stop()
	env := append(os.Environ(), "TEMPORAL_ADDRESS="+dev.said["Temporal"])
	reader, err := startProcess(ctx, "Gateway", env, binary, "gateway", "--role", "observer", "--address", "127.0.0.1:0", "--store", kept)
	if err != nil {
		return err
	}
	defer reader.stop()
	run, err := submitBusyRun(ctx, dev.said["Gateway"])
	if err != nil {
		return err
	}
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	alone, err := costs(ctx, reader, dev)
	if err != nil {
		return err
	}
	crowd, err := gather(ctx, reader.said["Gateway"]+by.path(run), by)
	if err != nil {
		return err
	}
	defer crowd.leave()
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	before := crowd.events.Load()
	followed, err := costs(ctx, reader, dev)
	if err != nil {
		return err
	}
	events := crowd.events.Load() - before
	if n := crowd.lost.Load(); n > 0 {
		return fmt.Errorf("%d of the followers have lost their streams", n)
	}
	percent := func(d time.Duration) string {
		return fmt.Sprintf("%.1f%% of a core", 100*d.Seconds()/followedFor.Seconds())
	}
	fmt.Println()
	fmt.Println("| a busy run | without followers | followed | more |")
	fmt.Println("|---|--:|--:|--:|")
	fmt.Printf("| %d %s, %.1f updates a second each: the gateway | %s | %s | %s |\n", by.n, by.who,
		float64(events)/float64(by.n)/followedFor.Seconds(), percent(alone[0]), percent(followed[0]), percent(followed[0]-alone[0]))
	fmt.Printf("| server, control process and node | %s | %s | %s |\n", percent(alone[1]), percent(followed[1]), percent(followed[1]-alone[1]))
	return nil
}

// costs returns the processor time that processes use during the measurement.
func costs(ctx context.Context, processes ...*process) ([]time.Duration, error) {
	var taken []time.Duration
	for _, p := range processes {
		cpu, err := p.cpu()
		if err != nil {
			return nil, err
		}
		taken = append(taken, -cpu)
	}
	if err := sleep(ctx, followedFor); err != nil {
		return nil, err
	}
	for k, p := range processes {
		cpu, err := p.cpu()
		if err != nil {
			return nil, err
		}
		taken[k] += cpu
	}
	return taken, nil
}

// submitBusyRun starts a run of sequential tasks that last half a second each.
func submitBusyRun(ctx context.Context, gateway string) (id string, err error) {
	var document strings.Builder
	document.WriteString("name: busy\ntasks:\n")
	for k := range 300 {
		fmt.Fprintf(&document, "  t%03d: { type: shell, spec: { command: sleep 0.5 }", k)
		if k > 0 {
			fmt.Fprintf(&document, ", dependsOn: [t%03d]", k-1)
		}
		document.WriteString(" }\n")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+"/v1/runs", strings.NewReader(document.String()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/yaml")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var said struct{ ID, Message string }
	if err := json.NewDecoder(res.Body).Decode(&said); err != nil {
		return "", fmt.Errorf("read the answer of submit: %w", err)
	}
	if said.ID == "" {
		return "", fmt.Errorf("submit a busy run: %s", said.Message)
	}
	return said.ID, nil
}

// crowd holds clients that follow a stream.
type crowd struct {
	events, lost atomic.Int64
	cancel       context.CancelFunc
	wg           sync.WaitGroup
}

// gather makes clients open a stream, and returns when each has received its first update.
func gather(ctx context.Context, url string, by following) (*crowd, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{cancel: cancel}
	came := make(chan error, by.n)
	for k := range by.n {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+k/followersEach))}}
		client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
		c.wg.Go(func() { c.follow(ctx, client, url, by.update, came) })
	}
	for range by.n {
		if err := <-came; err != nil {
			c.leave()
			return nil, err
		}
	}
	return c, nil
}

// leave ends the streams.
func (c *crowd) leave() {
	c.cancel()
	c.wg.Wait()
}

// follow counts the updates of a stream. It sends nil to came after the first one, or an error instead.
func (c *crowd) follow(ctx context.Context, client *http.Client, url, update string, came chan<- error) {
	first := true
	err := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return errors.New(res.Status)
		}
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, maxUpdate)
		for lines.Scan() {
			if !strings.HasPrefix(lines.Text(), update) {
				continue
			}
			c.events.Add(1)
			if first {
				came <- nil
				first = false
			}
		}
		return errors.New("the stream has ended")
	}()
	if first {
		came <- err
	} else if ctx.Err() == nil {
		c.lost.Add(1)
	}
}
