//go:build engines

package page

import (
	"fmt"
	"testing"

	"switchyard/dev/browsertest"
	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// testPageContinuesAfterItsGatewayWasRestarted checks that an open page shows a lost connection while its gateway
// restarts, and then continues.
func testPageContinuesAfterItsGatewayWasRestarted(t *testing.T, s *stack) {
	address := fmt.Sprintf("127.0.0.1:%d", testneeds.FreePort(t))
	gateway := s.startGateway(t, address)
	before := s.Submit(t, completedDefinition)
	tab := browsertest.Open(t, "http://"+address+"/ui/runs")
	tab.WaitText("#runs", before)
	tab.WaitTrue("document.body.dataset.live == 'live'")
	tab.Check(t)
	if err := gateway.Kill(); err != nil {
		t.Fatal(err)
	}
	tab.WaitText("#connection", "lost")
	during := s.Submit(t, completedDefinition)
	s.startGateway(t, address)
	t.Logf("the page shows what it missed %v after the gateway began to listen", tab.WaitText("#runs", during))
	tab.WaitTrue("document.body.dataset.live == 'live' && document.getElementById('connection').hidden")
	after := s.Submit(t, completedDefinition)
	awaitLive(t, tab, "#runs", after)
	tab.Allow("net::ERR_") // while there was no gateway
	tab.Check(t)
}

// startGateway starts a second gateway of a stack at an address.
func (s *stack) startGateway(t *testing.T, address string) *processes.Program {
	t.Helper()
	p := start(t, []string{"TEMPORAL_ADDRESS=" + s.Temporal}, "gateway", "--address", address, "--store", s.Store)
	p.Field("Gateway")
	return p
}
