package cli

import (
	"net/http"
	"net/http/httptest"
	"os/user"
	"strings"
	"testing"

	"switchyard/workflows/names"
)

// TestCallsNameTheirSender checks that every call names the user and the machine that send it.
func TestCallsNameTheirSender(t *testing.T) {
	t.Parallel()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	claims := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims <- r.Header.Get(names.ActorHeader)
		w.WriteHeader(http.StatusTeapot)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	for _, args := range [][]string{{"runs", "cancel", "some-run", "--reason", "enough"}, {"nodes", "drain", "a"}, {"workflows", "list"}} {
		run(t, append(args, "--gateway", server.URL)...)
		select {
		case claim := <-claims:
			if !strings.HasPrefix(claim, u.Username+"@") {
				t.Errorf("%v is sent by %q", args, claim)
			}
		default:
			t.Errorf("%v was not sent", args)
		}
	}
}
