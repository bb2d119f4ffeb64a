package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/program/streamjson"
)

// AttachOptions configure Attach. Shell, Dir and Command are required.
type AttachOptions struct {
	// Shell starts the program.
	Shell executor.Executor
	// Dir is the folder of the sessions; see Folder.
	Dir string
	// Name is the id of the session. If it is empty, the id is the one that the program reports.
	Name string
	// Command is the program and its arguments. For claude, Attach adds the flags that make it read and print JSON
	// lines.
	Command []string
	// WorkDir is the working directory of the program; empty means the current directory.
	WorkDir string
	// Log receives the agent's messages in readable form, and Stderr the standard error of the program. Either may be
	// nil.
	Log, Stderr io.Writer
	// Ready is called when the session accepts connections. It may be nil.
	Ready func(id string)
	// Grace is the time between SIGTERM and SIGKILL; 0 means 10 seconds.
	Grace time.Duration
}

// Attach runs a program and serves its session until the program or ctx ends.
func Attach(ctx context.Context, o AttachOptions) (executor.Result, error) {
	command, name := claudeCommand(o.Command, o.Name)
	if err := openFolder(o.Dir); err != nil {
		return executor.Result{}, err
	}
	stdin, messages, err := os.Pipe()
	if err != nil {
		return executor.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &attached{options: o, host: newHost(messages, o.Log), cancel: cancel}
	if name != "" {
		if err := s.open(name); err != nil {
			return executor.Result{}, errors.Join(err, stdin.Close(), messages.Close())
		}
	}
	words := make([]*structpb.Value, 0, len(command))
	for _, word := range command {
		words = append(words, structpb.NewStringValue(word))
	}
	lines := &streamjson.LineWriter{OnLine: s.onLine}
	result, err := o.Shell.Run(ctx, executor.Attempt{
		ID:   fmt.Sprintf("attach-%s/agent/c1", uuid.NewString()),
		Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"command": structpb.NewListValue(&structpb.ListValue{Values: words})}},
		Dirs: executor.Dirs{Base: o.WorkDir}, Streams: executor.Streams{Stdin: stdin, Stdout: lines, Stderr: o.Stderr}, Ending: executor.Ending{Grace: cmp.Or(o.Grace, 10*time.Second)},
	}, func() {
		stdin.Close()
		if name != "" {
			s.ready(name)
		}
	})
	_ = lines.Flush()
	stdin.Close()
	s.close(result)
	if s.err != nil {
		err = s.err
	}
	return result, err
}

// attached is a session that is served on its socket.
type attached struct {
	options AttachOptions
	host    *host
	cancel  context.CancelCauseFunc
	id      string
	lock    *os.File
	path    string
	// err is why the session could not be opened after the program reported its id, or nil.
	err error
	// release frees the resources behind the listener's path.
	release func()
	l       net.Listener
}

// open locks the session and listens on its socket.
func (s *attached) open(id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	lock, err := lockSession(s.options.Dir, id)
	if err != nil {
		return err
	}
	s.id, s.lock, s.path = id, lock, filepath.Join(s.options.Dir, id+socketSuffix)
	path, release, err := socketPath(s.options.Dir, id)
	if err != nil {
		return err
	}
	s.release = release
	// The lock is held, so an existing socket is left from a killed process.
	if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen for messages to session %s: %w", id, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	s.l = l
	return nil
}

// ready starts to serve the session.
func (s *attached) ready(id string) {
	s.host.serve(id, s.l)
	if s.options.Ready != nil {
		s.options.Ready(id)
	}
}

// onLine handles a line of the program and opens the session if the line reports its id.
func (s *attached) onLine(line []byte, cut int64) error {
	if s.id == "" && s.err == nil && cut == 0 {
		if l := streamjson.ParseLine(line); l != nil && l.InitSession() != "" {
			if s.err = s.open(l.InitSession()); s.err != nil {
				s.cancel(s.err)
			} else {
				s.ready(l.InitSession())
			}
		}
	}
	return s.host.onLine(line, cut)
}

// close ends the session after its program has ended.
func (s *attached) close(r executor.Result) {
	why := fmt.Sprintf("its program exited with code %d", r.ExitCode)
	if r.Stopped {
		why = "it was detached"
	}
	if s.l != nil {
		s.l.Close()
	}
	s.host.close(why)
	if s.path != "" {
		_ = os.Remove(s.path)
	}
	if s.release != nil {
		s.release()
	}
	if s.lock != nil {
		// The file stays: another process may be waiting to lock it.
		s.lock.Close()
	}
}

// claudeCommand returns the command, with the flags that make claude read and print JSON lines, and the id of the
// session, or "" if only the program will report it.
func claudeCommand(command []string, name string) ([]string, string) {
	if len(command) == 0 || filepath.Base(command[0]) != "claude" {
		return command, name
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(command, func(arg string) bool { return slices.Contains(words, arg) })
	}
	command = slices.Clone(command)
	if !has("-p", "--print") {
		command = append(command, "-p")
	}
	for _, flag := range []string{"--input-format", "--output-format"} {
		if !has(flag) {
			command = append(command, flag, "stream-json")
		}
	}
	if !has("--verbose") {
		command = append(command, "--verbose")
	}
	// claude reports its session only after the first message, so the id is chosen here.
	if name == "" && !has("--session-id", "--resume", "-r", "--continue", "-c") {
		name = uuid.NewString()
		command = append(command, "--session-id", name)
	}
	return command, name
}
