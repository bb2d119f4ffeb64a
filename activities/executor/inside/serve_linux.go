package inside

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor/tartree"
)

// ServeIfAsked runs this process as a helper if it was started as one, and then does not return. It must be the first call of
// main, and of TestMain where tests enter processes: the helper is the same binary and should do nothing else.
func ServeIfAsked() {
	if os.Args[0] != Name {
		return
	}
	unix.CloseOnExec(planFile)
	unix.CloseOnExec(sayPipe)
	said := os.NewFile(sayPipe, "say")
	a := serve()
	text, err := json.Marshal(a)
	if err != nil {
		os.Exit(1)
	}
	_, _ = said.Write(text)
	syscall.Exit(0) // os.Exit would wait a second for the race detector
}

func serve() answer {
	failed := func(err error) answer { return answer{Error: tartree.OneLine(err.Error()), Denied: true} }
	// A write to a pipe that the worker has closed must fail and be reported, rather than end the process.
	signal.Ignore(syscall.SIGPIPE)
	text, err := io.ReadAll(io.NewSectionReader(os.NewFile(planFile, "plan"), 0, math.MaxInt64))
	if err != nil {
		return failed(fmt.Errorf("read the plan: %w", err))
	}
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		return failed(fmt.Errorf("read the plan: %w", err))
	}
	if err := p.switchUser(); err != nil {
		return failed(err)
	}
	if err := p.carryOut(); err != nil {
		return answer{Error: tartree.OneLine(err.Error()), Kind: kindOf(err)}
	}
	return answer{}
}

func (p *plan) carryOut() error {
	switch p.Action {
	case serveSFTP:
		return serveFiles(p.Dir, os.Stdin, os.Stdout)
	case readTar:
		return pack(p.Path, os.Stdout)
	case writeTar:
		in, err := untilSignal()
		if err != nil {
			return err
		}
		return unpack(p.Path, p.Rename, in)
	}
	return fmt.Errorf("unknown action %q", p.Action)
}

// untilSignal returns standard input that fails on SIGTERM, so that an incomplete file is removed.
func untilSignal() (*os.File, error) {
	if err := syscall.SetNonblock(0, true); err != nil {
		return nil, err
	}
	in := os.NewFile(0, "stdin") // uses the poller, unlike os.Stdin
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		_ = in.SetReadDeadline(time.Unix(1, 0))
	}()
	return in, nil
}
