package e2e

import (
	"testing"

	"switchyard/dev/processes"
)

// lightBytes is the private memory limit of a client.
const lightBytes = 30 << 20

// TestClientsStayLight checks that a client uses little memory although the server is in the same binary.
func TestClientsStayLight(t *testing.T) {
	t.Parallel()
	s := shared(t)
	file := write(t, "name: light\ntasks:\n  a: { type: shell, spec: { command: 'true' } }\n")
	for _, args := range [][]string{{"version"}, {"validate", file}, {"submit", file, "--gateway", s.Gateway}} {
		var most int64
		var code int
		processes.Await(t, args[0]+" is measured before it ends", func() bool {
			p := start(t, args...)
			for !p.HasEnded() {
				if bytes, err := processes.Memory(p.Cmd.Process.Pid, "RssAnon"); err == nil { // otherwise it is ending
					most = max(most, bytes)
				}
			}
			code = p.Wait()
			return most > 0 || code != 0
		})
		if code != 0 || most > lightBytes {
			t.Errorf("%s: exit code %d, %d bytes of private memory, want at most %d", args[0], code, most, lightBytes)
		}
	}
}
