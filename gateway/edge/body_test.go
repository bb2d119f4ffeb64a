package edge

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
)

// bodyTime is the time for a body in these tests, which run on a fake clock.
const bodyTime = 10 * time.Second

// listener accepts connections in memory, which follow the fake clock.
type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) {
	if conn, ok := <-l; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l listener) Close() error {
	close(l)
	return nil
}

func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

// serve serves a handler within the limits, and returns a client of it.
func serve(t *testing.T, handler http.Handler, isHTTP2 bool) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!isHTTP2)
	protocols.SetUnencryptedHTTP2(isHTTP2)
	conns := make(listener)
	server := &http.Server{Handler: NewBounds(Limits{BodyTime: bodyTime}.WithDefaults(), 0).Protect(handler), Protocols: protocols}
	served := make(chan error)
	go func() { served <- server.Serve(conns) }()
	transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		conns <- far
		return near, nil
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return &http.Client{Transport: transport}
}

// slowCall answers a call after more than bodyTime.
var slowCall = connect.NewUnaryHandler("/call", func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
	time.Sleep(2 * bodyTime)
	return connect.NewResponse(&emptypb.Empty{}), nil
})

// TestStalledBodyEndsTheCall sends a part of a body over each version of HTTP.
func TestStalledBodyEndsTheCall(t *testing.T) {
	for _, isHTTP2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			body, writer := io.Pipe()
			defer writer.Close()
			go func() { _, _ = io.WriteString(writer, "{") }()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway/call", body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			began := time.Now()
			res, err := serve(t, slowCall, isHTTP2).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			took := time.Since(began).Round(time.Second) // a server over HTTP/1 waits a little before it closes a connection
			if text, err := io.ReadAll(res.Body); res.StatusCode != http.StatusGatewayTimeout || took != bodyTime || err != nil {
				t.Errorf("HTTP/2 %t: %s %s after %v, %v", isHTTP2, res.Status, text, took, err)
			}
		})
	}
}

// TestBodyTimeoutEndsWithItsBody checks that the time for a body covers neither the response nor the next request on the same
// connection.
func TestBodyTimeoutEndsWithItsBody(t *testing.T) {
	for _, isHTTP2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client := connect.NewClient[emptypb.Empty, emptypb.Empty](serve(t, slowCall, isHTTP2), "http://gateway/call")
			for range 2 {
				if _, err := client.CallUnary(t.Context(), connect.NewRequest(&emptypb.Empty{})); err != nil {
					t.Errorf("HTTP/2 %t: %v", isHTTP2, err)
				}
				time.Sleep(2 * bodyTime)
			}
		})
	}
}

func TestStreamOutlivesItsBodyTimeout(t *testing.T) {
	for name, option := range map[string]connect.ClientOption{"Connect": connect.WithProtoJSON(), "gRPC": connect.WithGRPC()} {
		synctest.Test(t, func(t *testing.T) {
			handler := connect.NewServerStreamHandler("/call", func(_ context.Context, _ *connect.Request[emptypb.Empty], s *connect.ServerStream[emptypb.Empty]) error {
				err := s.Send(&emptypb.Empty{})
				time.Sleep(2 * bodyTime)
				return errors.Join(err, s.Send(&emptypb.Empty{}))
			})
			stream, err := connect.NewClient[emptypb.Empty, emptypb.Empty](serve(t, handler, true), "http://gateway/call", option).
				CallServerStream(t.Context(), connect.NewRequest(&emptypb.Empty{}))
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			received := 0
			for stream.Receive() {
				received++
			}
			if received != 2 || stream.Err() != nil {
				t.Errorf("%s: %d messages, %v", name, received, stream.Err())
			}
		})
	}
}
