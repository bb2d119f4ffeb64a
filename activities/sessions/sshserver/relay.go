package sshserver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// relay copies between a channel and a connection, each direction until its end, and then closes both.
func relay(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request, conn net.Conn) {
	shut := sync.OnceFunc(func() {
		_ = channel.Close() // errors mean that it is already closed
		_ = conn.Close()
	})
	defer context.AfterFunc(ctx, shut)()
	var copying sync.WaitGroup
	received := make(chan struct{})
	copying.Go(func() {
		defer close(received)
		copyHalf(conn, channel, shut)
	})
	copying.Go(func() { copyHalf(channel, conn, shut) })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		ssh.DiscardRequests(requests) // until the client has closed the channel
		<-received                    // deliver what the client has sent before
		shut()
	}()
	copying.Wait()
	shut()
	<-closed
}

// copyHalf copies one direction and then closes that half. After an error it shuts both directions.
func copyHalf(to io.Writer, from io.Reader, shut func()) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok {
		err = half.CloseWrite()
	}
	if err != nil && !errors.Is(err, io.EOF) || !ok {
		shut()
	}
}
