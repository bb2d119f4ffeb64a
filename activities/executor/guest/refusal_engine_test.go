//go:build linux && engines

package guest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/guest"
)

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// TestRefusalNamesRemedy checks that a refusal names what the machine lacks.
func TestRefusalNamesRemedy(t *testing.T) {
	t.Parallel()
	without := newOpenSSH(t, "AllowTcpForwarding no").enter(t)
	lacking := newOpenSSH(t, "Subsystem sftp /no/such/sftp-server", "PermitTTY no").enter(t)
	for name, test := range map[string]struct {
		err  func(ctx context.Context) error
		want string
	}{
		"dial":   {func(ctx context.Context) error { _, err := without.Dial(ctx, 22); return err }, "AllowTcpForwarding"},
		"listen": {func(ctx context.Context) error { _, err := without.Listen(ctx, 0); return err }, "AllowTcpForwarding"},
		"sftp": {func(ctx context.Context) error {
			read, write := io.Pipe()
			defer write.Close()
			return lacking.ServeFiles(ctx, "", struct {
				io.Reader
				io.Writer
			}{read, io.Discard})
		}, "openssh-sftp-server"},
		"read": {func(ctx context.Context) error { return lacking.ReadTar(ctx, "", "/etc", io.Discard) }, "openssh-sftp-server"},
		"write": {func(ctx context.Context) error {
			return lacking.WriteTar(ctx, "", "/tmp", false, strings.NewReader(""))
		}, "openssh-sftp-server"},
		"terminal": {func(ctx context.Context) error {
			_, err := lacking.Exec(ctx, executor.Command{Args: []string{"true"}, Terminal: &executor.Terminal{Type: "vt100"}})
			return err
		}, "terminal"},
		"user": {func(ctx context.Context) error {
			_, err := without.Exec(ctx, executor.Command{Args: []string{"true"}, User: "someone-else"})
			return err
		}, "someone-else"},
		"variable": {func(ctx context.Context) error {
			_, err := without.Exec(ctx, executor.Command{Args: []string{"true"}, Env: map[string]string{"A=B": "c"}})
			return err
		}, "A=B"},
	} {
		err := test.err(t.Context())
		if r, ok := errors.AsType[*executor.Refusal](err); !ok || !strings.Contains(r.Text, test.want) {
			t.Errorf("%s: error %v, want a Refusal with %q", name, err, test.want)
		}
	}
}

// TestArgumentsAndVariablesArriveUnchanged checks that arguments and variables arrive unchanged, even if a shell would interpret
// them.
func TestArgumentsAndVariablesArriveUnchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	odd := "it's \"$HOME\" `id` \\n !x\n\nsecond\tline\xff ü\r*"
	long := strings.Repeat("long ", 30_000)[:120_000]
	for name, start := range map[string]func(t *testing.T) *machine{"openssh": func(t *testing.T) *machine { return newOpenSSH(t) }, "dropbear": newDropbear} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t).enter(t, func(o *guest.Options) { o.Dir, o.Env = dir, map[string]string{"TERM": "none", "OF_ALL": "1"} })
			script := `printf '%s|' "$@" "$ODD" "$l" "$OF_ALL" "$PWD"; printf %s "$LONG" | wc -c`
			c := executor.Command{
				Args: []string{"sh", "-c", script, "sh", odd, "", "-n"},
				Env:  map[string]string{"ODD": odd, "LONG": long, "l": "\n", "a.b": "dotted's", "UID": "7"},
			}
			want := odd + "||-n|" + odd + "|\n|1|" + dir + "|120000\n"
			got := prints(t, g, c)
			if got != want {
				t.Errorf("got %q\nwant %q", got, want)
			}
			// A shell would drop one of these variables, and refuse to change another.
			if got := prints(t, g, executor.Command{Args: []string{"env"}, Env: c.Env}); !strings.Contains(got, "\na.b=dotted's\n") || !strings.Contains(got, "\nUID=7\n") {
				t.Errorf("the environment is %q", got)
			}
			c.Terminal = &executor.Terminal{Type: "vt220"}
			c.Args[2] = `stty raw; ` + script + `; echo $TERM`
			got = prints(t, g, c)
			if got != want+"vt220\n" {
				t.Errorf("with a terminal: got %q\nwant %q", got, want)
			}
			if got := prints(t, g, executor.Command{Line: `echo "$1 $PWD"`, Dir: ".."}); got != " "+filepath.Dir(dir)+"\n" {
				t.Errorf("a relative directory is %q", got)
			}
		})
	}
}

// TestVariablesStayOutOfProcessList checks that other users of the machine cannot see variables.
func TestVariablesStayOutOfProcessList(t *testing.T) {
	t.Parallel()
	g := newOpenSSH(t).enter(t)
	file := filepath.Join(t.TempDir(), "needle")
	c := executor.Command{
		Args: []string{"sh", "-c", `printf %s "$SECRET" >"$FILE"; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -c -F -f "$FILE"; true`},
		Env:  map[string]string{"SECRET": "hidden-4711-value", "FILE": file},
	}
	if got := prints(t, g, c); got != "0\n" {
		t.Errorf("%q command lines have it", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "hidden-4711-value" {
		t.Errorf("the program has %q, error %v", text, err)
	}
}
