package sshserver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// relay copies between a channel and a connection, each direction until its end, and closes both.
func relay(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request, conn net.Conn) {
	shut := sync.OnceFunc(func() {
		_ = channel.Close() // errors mean that the ends are closed
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
		<-received                    // what it has sent before that counts
		shut()
	}()
	copying.Wait()
	shut()
	<-closed
}

// copyHalf copies one direction, and closes it behind the last byte. After an error nothing more can be copied in either.
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
