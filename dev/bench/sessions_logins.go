package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

// loginsAtOnce is the number of concurrent SSH logins.
const loginsAtOnce = 200

// logins measures concurrent SSH logins at the gateway. Once all clients have logged in, each runs `true`.
func (b *sessionBench) logins(ctx context.Context, rounds int) error {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	if _, err := client.Call(ctx, b.client, b.client.Keys.AddKey, &v1.AddKeyRequest{PublicKey: string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}); err != nil {
		return err
	}
	fmt.Printf("%d SSH clients at once, each with a connection and a key exchange of its own, and `true` by each when all have logged in; to reach: no failure.\n\n", loginsAtOnce)
	fmt.Println("| into | failures | all have logged in after | lowest and highest | `true` by all | lowest and highest |\n|---|--:|--:|--:|--:|--:|")
	for _, task := range []string{processTask, boxTask} {
		var loggedIn, ran []time.Duration
		var failures []error
		for range rounds {
			a, r, failed := b.loginAll(ctx, task, signer)
			if err := ctx.Err(); err != nil {
				return err
			}
			loggedIn, ran, failures = append(loggedIn, a), append(ran, r), append(failures, failed...)
		}
		fmt.Printf("| task %s | %d of %d | %s | %s to %s | %s | %s to %s |\n", task, len(failures), rounds*loginsAtOnce,
			inMs(median(loggedIn)), inMs(slices.Min(loggedIn)), inMs(slices.Max(loggedIn)), inMs(median(ran)), inMs(slices.Min(ran)), inMs(slices.Max(ran)))
		if len(failures) > 0 {
			return fmt.Errorf("task %s: %d logins have failed, one with: %w", task, len(failures), failures[0])
		}
	}
	return nil
}

// loginAll returns how long it takes until all clients have logged in, and how long until each has then run `true`.
func (b *sessionBench) loginAll(ctx context.Context, task string, signer ssh.Signer) (loggedIn, ran time.Duration, failures []error) {
	var mu sync.Mutex
	var clients []*ssh.Client
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	var all sync.WaitGroup
	began := time.Now()
	for range loginsAtOnce {
		all.Go(func() {
			c, err := b.login(ctx, task, signer)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, fmt.Errorf("log in: %w", err))
				return
			}
			clients = append(clients, c)
		})
	}
	all.Wait()
	loggedIn = time.Since(began)
	began = time.Now()
	for _, c := range clients {
		all.Go(func() {
			if err := runTrue(c); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, fmt.Errorf("run true: %w", err))
			}
		})
	}
	all.Wait()
	return loggedIn, time.Since(began), failures
}

func (b *sessionBench) login(ctx context.Context, task string, signer ssh.Signer) (*ssh.Client, error) {
	address := b.sshAddress()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	opened, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: task + "." + b.run, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), // this process started the gateway
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return ssh.NewClient(opened, channels, requests), nil
}

func runTrue(c *ssh.Client) error {
	s, err := c.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Run("true")
}
