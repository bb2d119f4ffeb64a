package workers

import "testing"

func TestIsLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:7233": true, "[::1]:7233": true, "localhost:7233": true, "127.8.8.8:1": true,
		"10.0.0.1:7233": false, "temporal.example:7233": false, "localhost.example:7233": false, "[::]:7233": false, "localhost": false, "": false,
	} {
		if got := isLoopback(address); got != want {
			t.Errorf("%q: %t, want %t", address, got, want)
		}
	}
}
