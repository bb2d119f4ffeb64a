package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// LogStream reads the logs that a request selects. It reads each part once, however often the gateway becomes
// unreachable.
type LogStream struct {
	Client  *Client
	Request *v1.StreamRunLogsRequest
	// OnLost is called once each time the gateway becomes unreachable.
	OnLost func()

	positions map[logKey]int64
	missing   []*v1.MissingLog
}

// logKey identifies the log of one dispatch.
type logKey struct {
	task                       string
	generation, attempt, claim int32
}

// Read prints the logs until the stream ends.
func (s *LogStream) Read(ctx context.Context, p *output.LogPrinter) error {
	if s.positions == nil {
		s.positions = map[logKey]int64{}
	}
	s.missing = nil
	var broken error // error of the printer
	err := s.Client.reconnect(ctx, s.OnLost, func(received func()) error {
		s.Request.Resume = nil
		for key, next := range s.positions {
			s.Request.Resume = append(s.Request.Resume, &v1.LogPosition{Task: key.task, Generation: key.generation, Attempt: key.attempt, Claim: key.claim, Next: next})
		}
		var err error
		err, broken = s.readOnce(ctx, p, received)
		return err
	})
	return errors.Join(broken, err)
}

func (s *LogStream) readOnce(ctx context.Context, p *output.LogPrinter, received func()) (err, broken error) {
	stream, err := s.Client.Runs.StreamRunLogs(ctx, connect.NewRequest(s.Request))
	if err != nil {
		return err, nil
	}
	defer func() {
		// Err has already returned the error of the stream.
		_ = stream.Close()
	}()
	if len(stream.ResponseHeader()) > 0 {
		received() // tasks may print nothing for a long time
	}
	for stream.Receive() {
		received()
		m := stream.Msg()
		if m.GetMissing() != nil {
			s.missing = append(s.missing, m.GetMissing())
		}
		if err := p.Print(m.GetEntries()); err != nil {
			return nil, err
		}
		if at := m.GetPosition(); at != nil {
			s.positions[logKey{at.GetTask(), at.GetGeneration(), at.GetAttempt(), at.GetClaim()}] = at.GetNext()
		}
	}
	return stream.Err(), nil
}

// maxMissing is the most missing logs that an error names.
const maxMissing = 10

// Missing returns an error that names the missing logs, or nil if all were found.
func (s *LogStream) Missing() error {
	if len(s.missing) == 0 {
		return nil
	}
	var lines []string
	for k, m := range s.missing {
		if k == maxMissing {
			lines = append(lines, fmt.Sprintf("and %d more", len(s.missing)-k))
			break
		}
		what := "the log"
		if m.GetPartial() {
			what = "the end of the log"
		}
		lines = append(lines, words.OneLine(fmt.Sprintf("%s of task %s, attempt %d, is not in the gateway's store; node %s ran it and may have it", what, m.GetTask(), m.GetAttempt(), m.GetNode())))
	}
	if s.Request.GetChildren() {
		return &exit.Error{Code: exit.CodeSystem, Err: errors.New(strings.Join(lines, "\n")), Hint: "check that the node reaches this gateway or uses the same --store"}
	}
	return &exit.Error{
		Code: exit.CodeSystem, Err: errors.New(strings.Join(lines, "\n")),
		Hint: "check that the node reaches this gateway or uses the same --store; the end of the output may be in the result: `switchyard runs get " + s.Request.GetId() + " " + output.ShellWord(s.missing[0].GetTask()) + "`",
	}
}
