package poll

import "time"

// KillWait is how long processes may take to disappear after SIGKILL. A process that hangs in the kernel, for
// example on a dead network file system, may take longer.
const KillWait = 30 * time.Second

// MaxPause bounds the pause between two checks.
const MaxPause = 20 * time.Millisecond

// Until calls done, with growing pauses, until it returns true. After KillWait it returns late().
func Until(done func() bool, late func() error) error {
	deadline := time.Now().Add(KillWait)
	for pause := 50 * time.Microsecond; !done(); pause = min(2*pause, MaxPause) {
		if time.Now().After(deadline) {
			return late()
		}
		time.Sleep(pause)
	}
	return nil
}

// While calls done, with growing pauses, until it returns true. If wanted returns an error first, While returns
// that error.
func While(wanted func() error, done func() bool) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, MaxPause) {
		if err := wanted(); err != nil {
			return err
		}
		if done() {
			return nil
		}
		time.Sleep(pause)
	}
}
