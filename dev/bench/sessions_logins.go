package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
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
	var loggedIn, ran []time.Duration
	for range rounds {
		a, r, failures := b.loginAll(ctx, signer)
		if len(failures) > 0 {
			return fmt.Errorf("%d logins have failed, one with: %w", len(failures), failures[0])
		}
		loggedIn, ran = append(loggedIn, a), append(ran, r)
	}
	fmt.Printf("%d SSH clients at once: all have logged in after %.2f s, and each has then run `true` after %.2f s\n",
		loginsAtOnce, median(loggedIn).Seconds(), median(ran).Seconds())
	return nil
}

// loginAll returns how long it takes until all clients have logged in, and how long until each has then run `true`.
func (b *sessionBench) loginAll(ctx context.Context, signer ssh.Signer) (loggedIn, ran time.Duration, failures []error) {
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
			c, err := b.login(ctx, signer)
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

func (b *sessionBench) login(ctx context.Context, signer ssh.Signer) (*ssh.Client, error) {
	address := b.sshAddress()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	opened, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: enteredTask + "." + b.run, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), // this process started the gateway
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
