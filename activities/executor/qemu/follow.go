package qemu

import (
	"context"
	"errors"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/lifecycle"
	"switchyard/activities/executor/qemu/qmp"
)

const (
	// endPoll is how often QEMU is checked for its end.
	endPoll = 200 * time.Millisecond
	// exitPatience is how long the launcher may take to write the exit code after QEMU has ended.
	exitPatience = 30 * time.Second
	// killPatience is how long QEMU may take to end after it was killed.
	killPatience = 30 * time.Second
)

// follow forwards the output of a started machine, stops the machine when ctx ends, removes what is left and returns
// how it ended.
func (m *machine) follow(ctx context.Context) (executor.Result, error) {
	received := make(chan struct{})
	m.calls.Go(func() {
		defer close(received)
		m.monitor.maintainConnection(m.life, m.adoptState, m.receive)
	})
	m.calls.Go(m.awaitEnd)
	m.calls.Go(m.awaitLogin)
	printed := make(chan error, 1)
	m.calls.Go(func() { printed <- m.console.copy(m.life, m.ended) })
	stopped := make(chan struct{})
	unstop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		if errors.Is(context.Cause(ctx), executor.ErrLetGo) {
			m.handOver()
			return
		}
		m.stop()
	})
	<-m.ended
	if !unstop() {
		<-stopped
	}
	writeErr := <-printed
	<-received // the last event explains the end
	result, err := m.result()
	return result, errors.Join(err, writeErr, m.close())
}

// awaitEnd waits until QEMU has ended and records how.
func (m *machine) awaitEnd() {
	for m.folder.isRunning() {
		sleep(m.life, endPoll)
		if m.life.Err() != nil {
			break
		}
	}
	if m.life.Err() == nil {
		ctx, cancel := context.WithTimeout(m.life, exitPatience)
		defer cancel()
		m.exit.code, m.exit.isKnown = m.folder.awaitExitCode(ctx)
		m.exit.isOOM = hasRunOutOfMemory(m.record.Cgroup)
	}
	m.lifecycle.End(0, true)
	close(m.ended)
}

// awaitExitCode waits for the exit code of a QEMU that has ended. It returns false if none appears before ctx ends.
func (f folder) awaitExitCode(ctx context.Context) (int, bool) {
	for {
		if code, ok := f.readNumber(exitFile); ok {
			return code, true
		}
		if _, wasStarted := f.readNumber(pidFile); !wasStarted || ctx.Err() != nil {
			return 0, false
		}
		sleep(ctx, startPoll)
	}
}

// adoptState starts to read QEMU's state of the machine into m. Events alone do not suffice after a lost connection, or for a
// machine that an earlier worker left.
func (m *machine) adoptState() {
	m.calls.Go(func() {
		m.steering.Lock() // the state does not change before m has it
		state, err := m.monitor.state(m.life)
		if err != nil {
			m.steering.Unlock()
			return // the next connection tries again
		}
		isHalfway := state == stateShutdown && m.lifecycle.State().Phase == lifecycle.Running
		if state == statePaused {
			m.lifecycle.SetPaused(true)
			m.endLeftCapture()
		}
		m.steering.Unlock()
		if isHalfway {
			_, _ = m.beginRestart() // an earlier worker has left a restart
		}
		m.checkStandstill(state)
	})
}

// receive handles an event of QEMU. It must not wait for QEMU.
func (m *machine) receive(e qmp.Event) {
	switch e.Name {
	case "SHUTDOWN":
		m.mu.Lock()
		m.reason = shutdownReason(e.Data)
		m.mu.Unlock()
	case "RESET":
		m.mu.Lock()
		m.reason = ""
		m.mu.Unlock()
		m.login.resetAnswered()
		if m.lifecycle.State().Phase == lifecycle.Running {
			m.attempt.Notify("the machine restarts by itself")
		}
	case "STOP":
		m.adoptState()
	}
}

// checkStandstill handles a machine that QEMU has stopped by itself.
func (m *machine) checkStandstill(state string) {
	switch state {
	case stateIOError:
		m.lifecycle.SetPaused(true)
		m.attempt.Notify("the machine is paused because the node has no disk space left; free some space and resume it")
	case stateInternalError:
		m.mu.Lock()
		m.isBroken = true
		m.mu.Unlock()
		m.kill()
	}
}
