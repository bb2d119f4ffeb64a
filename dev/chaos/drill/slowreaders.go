package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/dev/processes"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// readers is the number of clients that read a log slowly, and logBytes the minimum size of the log.
	readers  = 20
	logBytes = 40 << 20
	// readerBytes is the gateway's memory limit per slow reader, and clientBytes the memory limit of a client.
	readerBytes = 16 << 20
	clientBytes = 64 << 20
)

// slowReaders makes clients follow a large log at 1 KiB/s. They must not delay other clients or runs, and must use
// little memory in themselves and in the gateway.
func slowReaders(y *Cluster) error {
	if err := y.start("a"); err != nil {
		return err
	}
	gate := y.gate("work")
	d := y.crowd("loud", 1, job{last: fmt.Sprintf(`head -c %d /dev/urandom | base64 && echo said`, logBytes*3/4)})
	d.Tasks["gate"] = y.task(job{gate: gate})
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.eventually("the log is written", func() (bool, error) {
		r, err := y.get(id)
		return err == nil && v1.IsTaskTerminal(r.Tasks["t0"].State), err
	}); err != nil {
		return err
	}
	before, err := processes.Memory(y.process(gatewayName(0)).Cmd.Process.Pid, "RssAnon")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(y.ctx)
	slow, err := y.readSlowly(ctx, id)
	err = errors.Join(err, y.besideReaders(id, before, slow), y.open(gate))
	stop()
	slow.wait()
	if err != nil {
		return err
	}
	_, err = y.awaitEnd(id)
	return err
}

// slow holds clients that read slowly.
type slow struct {
	clients []*exec.Cmd
	reading sync.WaitGroup
	read    atomic.Int32 // number of clients that have read something
}

// readSlowly starts clients that follow the log of a run until ctx ends.
func (y *Cluster) readSlowly(ctx context.Context, id string) (*slow, error) {
	s := &slow{}
	for range readers {
		cmd := exec.CommandContext(ctx, y.Binary, "runs", "logs", id, "t0", "-f")
		cmd.Env = append(y.env(), "SWITCHYARD_GATEWAY="+y.gateways[0])
		out, err := cmd.StdoutPipe()
		if err != nil {
			return s, err
		}
		if err := cmd.Start(); err != nil {
			return s, err
		}
		s.clients = append(s.clients, cmd)
		s.reading.Go(func() {
			piece := make([]byte, 1<<10)
			for first := true; ; first = false {
				if _, err := io.ReadFull(out, piece); err != nil {
					return
				}
				if first {
					s.read.Add(1)
				}
				if processes.Pause(ctx, time.Second) != nil {
					return
				}
			}
		})
	}
	return s, nil
}

func (s *slow) wait() {
	s.reading.Wait()
	for _, cmd := range s.clients {
		_ = cmd.Wait() // the client was killed
	}
}

// besideReaders measures other clients' responses, and the memory use, while all clients read slowly.
func (y *Cluster) besideReaders(id string, before int64, s *slow) error {
	if err := y.eventually("all clients read", func() (bool, error) { return s.read.Load() == readers, nil }); err != nil {
		return err
	}
	other, err := y.submit(y.crowd("other", 4, job{ticks: 1}))
	if err != nil {
		return err
	}
	if _, err := y.finished(other); err != nil {
		return err
	}
	whole, err := y.must("runs", "logs", id, "t0", "--stdout")
	if err != nil {
		return err
	}
	if len(whole) < logBytes || !strings.HasSuffix(whole, "said\n") {
		return fmt.Errorf("the log has %d bytes, not %d", len(whole), logBytes)
	}
	after, err := processes.Memory(y.process(gatewayName(0)).Cmd.Process.Pid, "RssAnon")
	if err != nil {
		return err
	}
	most := int64(0)
	for _, cmd := range s.clients {
		n, err := processes.Memory(cmd.Process.Pid, "RssAnon")
		if err != nil {
			return err
		}
		most = max(most, n)
	}
	y.report("%d slow readers of %d MiB: the gateway grew from %d to %d MiB, the largest client takes %d MiB", readers, logBytes>>20, before>>20, after>>20, most>>20)
	if after-before > readers*readerBytes || most > clientBytes {
		return errors.New("slow readers take too much memory")
	}
	return nil
}
