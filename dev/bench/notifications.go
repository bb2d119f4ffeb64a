package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"switchyard/dev/processes"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// failingRuns is how many runs fail at once, and startsAtOnce how many of them are submitted at once.
	failingRuns  = 1000
	startsAtOnce = 50
	// answerTime is how long the receiver takes to answer, and refusedOfTen how many of ten requests it answers with an error.
	answerTime   = 2 * time.Second
	refusedOfTen = 3
	// deliveryTime is how long the messages of all runs may take.
	deliveryTime = 15 * time.Minute
)

// slowReceiver takes notifications slowly, and refuses some of them.
type slowReceiver struct {
	server *http.Server
	url    string

	mu       sync.Mutex
	requests int
	accepted map[string]int // by idempotency key
}

func startSlowReceiver() (*slowReceiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &slowReceiver{url: "http://" + listener.Addr().String() + "/yard", accepted: map[string]int{}}
	r.server = &http.Server{Handler: r}
	go func() { _ = r.server.Serve(listener) }() // ends when the receiver stops
	return r, nil
}

func (r *slowReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if processes.Pause(req.Context(), answerTime) != nil {
		return // the sender has gone away
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.requests%10 < refusedOfTen {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.accepted[req.Header.Get("Idempotency-Key")]++
}

// count returns how many messages were accepted, how many of them more than once, and how many requests there were.
func (r *slowReceiver) count() (messages, doubled, requests int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.accepted {
		if n > 1 {
			doubled++
		}
	}
	return len(r.accepted), doubled, r.requests
}

// benchNotifications compares runs that fail at once and tell a slow receiver with the same runs that tell no one.
func benchNotifications(ctx context.Context, rounds int, _ string) error {
	receiver, err := startSlowReceiver()
	if err != nil {
		return err
	}
	defer receiver.server.Close()
	y, err := openCluster(ctx)
	if err != nil {
		return err
	}
	defer y.close()
	target := &v1.NotificationTarget{Config: &v1.NotificationTarget_Ntfy{Ntfy: &v1.NtfyTarget{Url: receiver.url}}}
	if _, _, err := y.targets.Put(ctx, "slow", target, ""); err != nil {
		return err
	}
	failing := task("exit 1")
	failing.Retry = &v1.RetryPolicy{MaxRetries: proto.Int32(0)}
	silent, telling := oneTask("failing", failing), oneTask("failing", failing)
	telling.Notify = []*v1.Notification{{To: "slow", On: []string{v1.NotifyFailed}}}
	var with, without, delivery []time.Duration
	for round := range rounds + 1 {
		a, err := y.runAtOnce(ctx, silent, failingRuns)
		if err != nil {
			return err
		}
		began := time.Now()
		b, err := y.runAtOnce(ctx, telling, failingRuns)
		if err != nil {
			return err
		}
		if err := receiver.await(ctx, (round+1)*failingRuns); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "round %d: without %s, with %s, the last message after %s\n", round, rounded(a), rounded(b), time.Since(began).Round(time.Second))
		if round > 0 { // the first round warms the caches
			without, with, delivery = append(without, a), append(with, b), append(delivery, time.Since(began))
		}
	}
	messages, doubled, requests := receiver.count()
	a, b := median(without), median(with)
	fmt.Printf("| %d runs fail at once | with `notify` | without | ratio |\n|---|--:|--:|--:|\n", failingRuns)
	fmt.Printf("| a run | %s | %s | %.3f |\n", rounded(b/failingRuns), rounded(a/failingRuns), b.Seconds()/a.Seconds())
	fmt.Printf("%d runs were told by %d messages in %d requests, %d of them accepted twice; the last one of a round after %s\n",
		(rounds+1)*failingRuns, messages, requests, doubled, median(delivery).Round(time.Second))
	if doubled > 0 || messages != (rounds+1)*failingRuns {
		return errors.New("messages were lost or doubled")
	}
	return nil
}

// await waits until the receiver has accepted n messages, and then for the time of one more answer.
func (r *slowReceiver) await(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	for {
		if messages, _, _ := r.count(); messages >= n {
			return processes.Pause(ctx, 2*answerTime)
		}
		if err := processes.Pause(ctx, time.Second); err != nil {
			messages, _, _ := r.count()
			return fmt.Errorf("%d of %d messages arrived: %w", messages, n, err)
		}
	}
}

// runAtOnce submits a definition n times, and returns the time from the first submission to the end of the last run. The runs may fail.
func (y *cluster) runAtOnce(ctx context.Context, def *v1.Definition, n int) (time.Duration, error) {
	began := time.Now()
	ended := make([]time.Duration, n)
	group, ctx := errgroup.WithContext(ctx)
	starts := make(chan struct{}, startsAtOnce)
	for i := range n {
		group.Go(func() error {
			starts <- struct{}{}
			run, err := y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: names.NewRunID(def.GetName()), TaskQueue: names.ControlQueue}, names.RunWorkflow, &historyv1.RunInput{Definition: def})
			<-starts
			if err != nil {
				return err
			}
			if err := run.Get(ctx, nil); err == nil {
				return fmt.Errorf("run %s has not failed", run.GetID())
			}
			ended[i] = time.Since(began)
			return ctx.Err()
		})
	}
	err := group.Wait()
	longest := time.Duration(0)
	for _, at := range ended {
		longest = max(longest, at)
	}
	return longest, err
}
