package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// lightMiB is the private memory limit of a client.
const lightMiB = 30

// privateKiB returns the most private memory that a program was seen to use.
func privateKiB(p *program) (most int) {
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			return most
		}
		for line := range strings.Lines(string(text)) {
			if figure, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				kib, _ := strconv.Atoi(strings.Fields(figure)[0])
				most = max(most, kib)
			}
		}
		select {
		case <-p.ended:
			return most
		default:
		}
	}
}

// TestClientsStayLight checks that a client uses little memory although the server is in the same binary.
func TestClientsStayLight(t *testing.T) {
	t.Parallel()
	s := shared(t)
	file := write(t, "name: light\ntasks:\n  a: { type: shell, spec: { command: 'true' } }\n")
	for _, args := range [][]string{{"version"}, {"validate", file}, {"submit", file, "--gateway", s.gateway}} {
		var most, code int
		eventually(t, args[0]+" is measured before it ends", func() bool {
			p := start(t, args...)
			most = privateKiB(p)
			code = p.wait()
			return most > 0 || code != 0
		})
		if code != 0 || most > lightMiB<<10 {
			t.Errorf("%s: exit code %d, %d KiB of private memory, want at most %d MiB", args[0], code, most, lightMiB)
		}
	}
}
