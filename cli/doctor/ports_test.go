package doctor

import (
	"net"
	"os"
	"testing"
)

func TestAddressesOverlap(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"127.0.0.1", "::1", false},
		{"127.0.0.1", "0.0.0.0", true},
		{"::1", "0.0.0.0", false},
		{"::1", "::", true},
		{"127.0.0.1", "::", true},
		{"", "127.0.0.1", true},
	} {
		a, b := net.ParseIP(test.a), net.ParseIP(test.b)
		if overlap(a, b) != test.want || overlap(b, a) != test.want {
			t.Errorf("%q and %q: want %t", test.a, test.b, test.want)
		}
	}
}

// TestHolderListensAtTheAddress has a listener at the same port of another address, which holds nothing.
func TestHolderListensAtTheAddress(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if h := holderOf(t.Context(), listener.Addr().String()); h == nil || int(h.pid) != os.Getpid() || len(h.args) == 0 {
		t.Errorf("%+v, want this process", h)
	}
	if h := holderOf(t.Context(), net.JoinHostPort("::1", port)); h != nil {
		t.Errorf("%s holds another address", h)
	}
}
