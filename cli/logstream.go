package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// logStream reads the logs that a request asks for, once from each place however
// often the gateway goes away.
type logStream struct {
	api *api
	req *v1.StreamRunLogsRequest
	// lost is called once each time the gateway goes away.
	lost func(error)

	positions map[logKey]int64
	missing   []*v1.MissingLog
}

// logKey names the log of one dispatch.
type logKey struct {
	task           string
	attempt, claim int32
}

// read prints what comes until there is no more.
func (s *logStream) read(ctx context.Context, p *logPrinter) error {
	if s.positions == nil {
		s.positions = map[logKey]int64{}
	}
	s.missing = nil
	var broken error // of the printer
	err := s.api.outlast(ctx, s.lost, func(alive func()) error {
		s.req.Resume = nil
		for key, next := range s.positions {
			s.req.Resume = append(s.req.Resume, &v1.LogPosition{Task: key.task, Attempt: key.attempt, Claim: key.claim, Next: next})
		}
		var err error
		err, broken = s.readOnce(ctx, p, alive)
		return err
	})
	return errors.Join(broken, err)
}

func (s *logStream) readOnce(ctx context.Context, p *logPrinter, alive func()) (err, broken error) {
	stream, err := s.api.calls.StreamRunLogs(ctx, connect.NewRequest(s.req))
	if err != nil {
		return err, nil
	}
	defer func() {
		// What the stream ended with has been told by Err.
		_ = stream.Close()
	}()
	if len(stream.ResponseHeader()) > 0 {
		alive() // tasks may be silent for long
	}
	for stream.Receive() {
		alive()
		m := stream.Msg()
		if m.GetMissing() != nil {
			s.missing = append(s.missing, m.GetMissing())
		}
		if err := p.print(m.GetEntries()); err != nil {
			return nil, err
		}
		if at := m.GetPosition(); at != nil {
			s.positions[logKey{at.GetTask(), at.GetAttempt(), at.GetClaim()}] = at.GetNext()
		}
	}
	return stream.Err(), nil
}

// maxMissing is how many logs that are missing are named.
const maxMissing = 10

// complete returns an error that names the logs that are missing, or nil.
func (s *logStream) complete() error {
	if len(s.missing) == 0 {
		return nil
	}
	var lines []string
	for k, m := range s.missing {
		if k == maxMissing {
			lines = append(lines, fmt.Sprintf("and %d more", len(s.missing)-k))
			break
		}
		lines = append(lines, tui.OneLine(fmt.Sprintf("the log of task %s, attempt %d, is not in the gateway's store; node %s ran it and may have it", m.GetTask(), m.GetAttempt(), m.GetNode())))
	}
	return &failure{
		code: exitSystem, err: errors.New(strings.Join(lines, "\n")),
		hint: "does that node reach this gateway, or use the same --store? What its result kept of the output: `switchyard runs get " + s.req.GetId() + " " + shellWord(s.missing[0].GetTask()) + "`",
	}
}
