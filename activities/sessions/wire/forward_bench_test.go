package wire

import (
	"io"
	"testing"
)

// BenchmarkForward measures a forwarded port: a client, a gateway and a node, all in this process.
func BenchmarkForward(b *testing.B) {
	source, near := tcpPair(b)
	far, sink := tcpPair(b)
	clientEnd, gatewayFront := streamPair(b)
	gatewayBack, nodeEnd := streamPair(b)
	for _, pair := range [][2]Conn{{near, clientEnd}, {gatewayFront, gatewayBack}, {nodeEnd, far}} {
		go Join(pair[0], pair[1])
	}
	buffer := make([]byte, 128<<10)
	b.SetBytes(int64(len(buffer)))
	done := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{sink}, make([]byte, 128<<10))
		done <- err
	}()
	for b.Loop() {
		if _, err := source.Write(buffer); err != nil {
			b.Fatal(err)
		}
	}
	_ = source.CloseWrite()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
