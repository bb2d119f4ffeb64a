package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"switchyard/gateway/audit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// auditSubmits is how often each client of a round submits.
const auditSubmits = 20

// benchAudit prints what the audit entry adds to a submit, which waits for it. It measures both in alternation, with
// the same number of concurrent clients.
func benchAudit(ctx context.Context, y *cluster, url string, rounds int) error {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	runs := switchyardv1connect.NewRunServiceClient(&http.Client{Transport: transport}, url)
	recorder := audit.NewRecorder(y.store, time.Now, slog.New(slog.DiscardHandler))
	defer recorder.Close()
	submit := func() (string, error) {
		res, err := runs.SubmitRun(ctx, connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Definition{Definition: wideDefinition(1)}}))
		if err != nil {
			return "", err
		}
		return res.Msg.GetId(), nil
	}
	record := func() (string, error) {
		recorder.Record(ctx, &v1.AuditEntry{
			By: "ann", Role: v1.RoleUser, Kind: "token", Token: "a2b3c4d5", Action: "RunService/SubmitRun",
			Objects: map[string]string{"run": "wide-3f9a2c7b1d"}, From: "127.0.0.1", Result: v1.AuditOK,
		})
		return "", nil
	}
	fmt.Println("\n| clients at once | submit | its entry in the audit | share |")
	fmt.Println("|--:|--:|--:|--:|")
	for _, clients := range []int{1, 16} {
		var whole, part []time.Duration
		for round := range rounds + 1 {
			submits, submitted, err := timeCalls(clients, submit)
			if err != nil {
				return err
			}
			for _, id := range submitted {
				if err := y.conn.Client.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
					return fmt.Errorf("run %s: %w", id, err)
				}
			}
			records, _, err := timeCalls(clients, record)
			if err != nil {
				return err
			}
			if round > 0 { // the first round warms the caches
				whole, part = append(whole, submits...), append(part, records...)
			}
		}
		a, b := median(whole), median(part)
		fmt.Printf("| %d | %s | %s | %.1f%% |\n", clients, a.Round(10*time.Microsecond), b.Round(time.Microsecond), 100*b.Seconds()/a.Seconds())
	}
	return nil
}

// timeCalls makes concurrent clients call a function, auditSubmits times each. It returns the time and the result of
// each call.
func timeCalls(clients int, call func() (string, error)) (took []time.Duration, answers []string, err error) {
	var mu sync.Mutex
	var calling errgroup.Group
	for range clients {
		calling.Go(func() error {
			for range auditSubmits {
				began := time.Now()
				answer, err := call()
				d := time.Since(began)
				if err != nil {
					return err
				}
				mu.Lock()
				took, answers = append(took, d), append(answers, answer)
				mu.Unlock()
			}
			return nil
		})
	}
	err = calling.Wait()
	return took, answers, err
}
