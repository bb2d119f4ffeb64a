package testneeds

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a TCP port of 127.0.0.1 that nothing listens on. The port is below those that the system gives to listeners
// and connections that ask for none, so nothing takes it by accident.
func FreePort(t testing.TB) int {
	t.Helper()
	for {
		port := 10_000 + rand.IntN(20_000)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // it is in use
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
}
