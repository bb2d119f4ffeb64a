package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/cli/doctor"
	"switchyard/cli/exit"
)

func TestDoctorChecksEachGateway(t *testing.T) {
	got := run(t, "doctor", "client", "--gateway", "127.0.0.1:1", "--gateway", "127.0.0.1:2")
	for _, url := range []string{"http://127.0.0.1:1", "http://127.0.0.1:2"} {
		got.prints(t, exit.CodeNotDone, "the gateway at "+url+" cannot be reached")
	}
}

// TestDoctorFindsWhatAStartRefuses gives the same settings to the command of a role and to the doctor.
func TestDoctorFindsWhatAStartRefuses(t *testing.T) {
	dir := t.TempDir()
	settings := filepath.Join(dir, "worker.yaml")
	must(t, os.WriteFile(settings, []byte("name: Bad_Name!\n"), 0o600))
	plain := filepath.Join(dir, "plain")
	must(t, os.WriteFile(plain, nil, 0o600))
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"gateway", "--address", "0.0.0.0:17301"}, "add --auth tokens, or listen on 127.0.0.1"},
		{[]string{"gateway", "--tls-key", "k.pem"}, "--tls-cert is missing"},
		{[]string{"gateway", "--tls-client-ca", "c.pem"}, "--tls-cert is missing"},
		{[]string{"gateway", "--store", "http://127.0.0.1:7280"}, "must be a folder or a bucket"},
		{[]string{"gateway", "--retention", "0s"}, "--retention 0s"},
		{[]string{"worker", "--scratch-dir", filepath.Join(dir, "none")}, "must be a folder that this user can write to"},
		{[]string{"worker", "--temp-dir", filepath.Join(dir, "none")}, "must be a folder that this user can write to"},
		{[]string{"worker", "--spool-dir", filepath.Join(plain, "spool")}, "must be a folder that this user can write to"},
		{[]string{"worker", "--config", settings}, "use at most 63 of"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			runWith(t, nil, "", test.args...).ends(t, exit.CodeUsage, test.want)
			sys := newSystem(os.Stdin, os.Stdout, os.Stderr, func(string) string { return "" })
			cmd, _, err := newRoot(sys).Find([]string{"doctor"})
			must(t, err)
			must(t, cmd.ParseFlags(test.args[1:]))
			of, err := sys.flagsOf(cmd, test.args[0])
			must(t, err)
			if err := of.settings(nil).StartError; err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the doctor finds %v, want %s", err, test.want)
			}
		})
	}
}

func TestDoctorAcceptsDefaultSettings(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	sys := newSystem(os.Stdin, os.Stdout, os.Stderr, func(string) string { return "" })
	for _, role := range []string{doctor.RoleGateway, doctor.RoleWorker} {
		of, err := sys.flagsOf(newDoctor(sys), role)
		must(t, err)
		if err := of.settings(nil).StartError; err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}
