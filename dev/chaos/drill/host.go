package drill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// host is the machine of one member, on which the commands of a guide run. The commands that change a machine have stand-ins: apt
// installs the later program and restarts the service in the background, as the package does, and `systemctl start` waits until
// the service runs.
type host struct {
	*Cluster
	member string
	// service is the unit of the member, or "" if the machine has only clients. start starts it.
	service string
	start   func() error
	// restart receives the outcome of the restart that apt has begun. It is nil if nothing is restarting.
	restart chan error
}

// packageName matches the file of a package in the commands of a guide.
var packageName = regexp.MustCompile(`switchyard_([\d.]+)_`)

// follow runs commands of a guide on the machine, up to the first one that fails, and returns their output. The package that they
// name is in their folder. A restart that they begin must be over when they end.
func (h *host) follow(ctx context.Context, commands string) (string, error) {
	script, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(commands), h.member)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.Dir, "machine-"+h.member)
	if err := h.download(dir, commands); err != nil {
		return "", err
	}
	env := append(h.env(), "SWITCHYARD_GATEWAY="+h.url(0))
	var output bytes.Buffer
	shell, err := interp.New(interp.Dir(dir), interp.Env(expand.ListEnviron(env...)), interp.StdIO(nil, &output, &output), interp.Params("-eu"),
		interp.ExecHandlers(h.standIns))
	if err != nil {
		return "", err
	}
	err = shell.Run(ctx, script)
	if h.restart != nil {
		err = errors.Join(err, errors.New("the commands do not wait until the service has restarted"), <-h.restart)
		h.restart = nil
	}
	if err != nil {
		err = fmt.Errorf("the commands on the machine of %s: %w:\n%s", h.member, err, output.String())
	}
	return output.String(), err
}

// download puts the package that commands name into the folder in which they run, and its checksum. It holds the path of the program.
func (h *host) download(dir, commands string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	named := packageName.FindString(commands)
	if named == "" {
		return nil
	}
	name, content := named+runtime.GOARCH+".deb", []byte(h.Binary)
	sums := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
	return errors.Join(os.WriteFile(filepath.Join(dir, name), content, 0o600), os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums), 0o600))
}

// standIns runs the commands that have a stand-in, and the others as usual.
func (h *host) standIns(usual interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		shell := interp.HandlerCtx(ctx)
		var err error
		switch args[0] {
		case "hostname":
			_, err = fmt.Fprintln(shell.Stdout, h.member)
		case "dpkg":
			_, err = fmt.Fprintln(shell.Stdout, runtime.GOARCH)
		case "apt":
			err = h.apt(shell.Dir, args[1:])
		case "systemctl":
			err = h.systemctl(args[1:])
		case "switchyard":
			return usual(ctx, append([]string{h.program(clientName)}, args[1:]...))
		default:
			return usual(ctx, args)
		}
		if err != nil {
			fmt.Fprintf(shell.Stderr, "%s: %v\n", strings.Join(args, " "), err)
			return interp.ExitStatus(1)
		}
		return nil
	}
}

// apt installs a package, and restarts what runs.
func (h *host) apt(dir string, args []string) error {
	if len(args) != 2 || args[0] != "install" || !strings.HasPrefix(args[1], "./") {
		return errors.New("want install ./FILE")
	}
	program, err := os.ReadFile(filepath.Join(dir, args[1]))
	if err != nil {
		return err
	}
	if h.service == "" {
		h.setProgram(h.member, string(program))
		return nil
	}
	if h.restart != nil {
		return errors.New("the service is restarting already")
	}
	h.restart = make(chan error, 1)
	go func() { h.restart <- h.replaceProgram(h.member, string(program), h.start) }()
	return nil
}

// systemctl waits until the service of the machine runs.
func (h *host) systemctl(args []string) error {
	if !slices.Equal(args, []string{"start", h.service}) {
		return fmt.Errorf("want start %s", h.service)
	}
	if h.restart == nil {
		return nil
	}
	err := <-h.restart
	h.restart = nil
	return err
}
