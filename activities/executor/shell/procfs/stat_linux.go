package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"switchyard/activities/executor/shell/poll"
)

// Process holds the fields of /proc/<pid>/stat.
type Process struct {
	PID, Parent, Group, session int
	// Start is the start time, in clock ticks since the machine booted.
	Start  int
	Zombie bool
	// State is the letter of the process state: R, S, D, T, t, Z and so on.
	State byte
}

// IsStopped reports whether a process is stopped, or will stop before it returns to its program. A process that
// waits in the kernel, for a disk or for the child of a vfork, stops on its way back if it has been signalled.
func (p Process) IsStopped(signalled bool) bool {
	switch p.State {
	case 'T', 't':
		return true
	case 'D':
		return signalled
	}
	return false
}

// List returns all processes that are visible in /proc.
func List() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]Process, 0, len(names))
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		// A process that cannot be read has ended meanwhile.
		if p, err := Read(name); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// Read returns the process with a PID.
func Read(pid string) (Process, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return Process{}, err
	}
	return parseStat(text)
}

// HasExited reports whether a child of this process has ended, whether it has been waited for or not.
func HasExited(pid int) bool {
	p, err := Read(strconv.Itoa(pid))
	return errors.Is(err, fs.ErrNotExist) || p.Zombie
}

// parseStat parses a stat file, see proc_pid_stat(5). The name in parentheses may itself contain parentheses and
// spaces.
func parseStat(text []byte) (Process, error) {
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || shut < open {
		return Process{}, fmt.Errorf("no command name in %q", text)
	}
	fields := bytes.Fields(text[shut+1:])
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("too few fields in %q", text)
	}
	p := Process{State: fields[0][0], Zombie: fields[0][0] == 'Z' || fields[0][0] == 'X'}
	for i, field := range [][]byte{bytes.TrimSpace(text[:open]), fields[1], fields[2], fields[3], fields[19]} {
		n, err := strconv.Atoi(string(field))
		if err != nil {
			return Process{}, fmt.Errorf("field %q is not a number", field)
		}
		*[]*int{&p.PID, &p.Parent, &p.Group, &p.session, &p.Start}[i] = n
	}
	return p, nil
}

// maxEnvironment bounds how much of an environment is read. With the usual limits, Linux allows at most 6 MiB for
// arguments and environment together.
const maxEnvironment = 8 << 20

// execWait bounds how long a process may take to execute another program.
const execWait = 10 * time.Second

// Environ reads the environment with which a process started into buffer. The result is empty for a zombie, and for
// a process that this one may not inspect. A process that is just executing another program has no environment for a
// moment, so Environ waits for it.
func Environ(pid int, buffer *bytes.Buffer) []byte {
	var deadline time.Time
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, poll.MaxPause) {
		err := readEnviron(pid, buffer)
		if err != nil {
			return nil
		}
		if buffer.Len() > 0 || !isExecuting(pid) {
			return buffer.Bytes()
		}
		if now := time.Now(); deadline.IsZero() {
			deadline = now.Add(execWait)
		} else if now.After(deadline) {
			return nil
		}
		time.Sleep(pause)
	}
}

func readEnviron(pid int, buffer *bytes.Buffer) error {
	buffer.Reset()
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = buffer.ReadFrom(io.LimitReader(f, maxEnvironment))
	return err
}

// isExecuting reports whether a process whose environment was empty is executing another program, or has just done so.
func isExecuting(pid int) bool {
	m := readMemory(strconv.Itoa(pid))
	return m.exists && (m.environ != m.environEnd || m.code == "0" && codeIsKnown())
}

// memory holds addresses in the memory of a process.
type memory struct {
	// exists is false for a zombie and for a thread of the kernel.
	exists bool
	// code is "0" until the process executes its program: Linux sets it last, when the environment is complete.
	code string
	// environ and environEnd are equal if the environment is empty or not complete.
	environ, environEnd string
}

func readMemory(pid string) memory {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return memory{}
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 49 {
		return memory{}
	}
	return memory{string(fields[20]) != "0", string(fields[23]), string(fields[47]), string(fields[48])}
}

// codeIsKnown reports whether the kernel tells where programs are.
var codeIsKnown = sync.OnceValue(func() bool { return readMemory("self").code != "0" })

// hasEntry reports whether an environment has exactly the entry KEY=value.
func hasEntry(environ []byte, entry []byte) bool {
	for len(environ) > 0 {
		one, rest, _ := bytes.Cut(environ, []byte{0})
		if bytes.Equal(one, entry) {
			return true
		}
		environ = rest
	}
	return false
}

// PeakMemory returns the largest resident set that a process has had, in bytes, or 0 if unknown.
func PeakMemory(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
