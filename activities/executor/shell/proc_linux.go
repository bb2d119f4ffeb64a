package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// process is what /proc/<pid>/stat says of one.
type process struct {
	pid, parent, group, session int
	// start is when it was started, in clock ticks since the machine was.
	start  int
	zombie bool
	// state is the letter for what it does: R, S, D, T, t, Z and so on.
	state byte
}

// processes lists all that /proc shows.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(names))
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		// One that cannot be read has ended meanwhile.
		if p, err := readProcess(name); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

func readProcess(pid string) (process, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(text)
}

// exited tells whether a child of this process has ended, waited for or not.
func exited(pid int) bool {
	p, err := readProcess(strconv.Itoa(pid))
	return errors.Is(err, fs.ErrNotExist) || p.zombie
}

// parseStat reads the text of a stat file, see proc_pid_stat(5). The name in
// parentheses may hold anything, parentheses and spaces included.
func parseStat(text []byte) (process, error) {
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || shut < open {
		return process{}, fmt.Errorf("no command name in %q", text)
	}
	fields := bytes.Fields(text[shut+1:])
	if len(fields) < 20 {
		return process{}, fmt.Errorf("too few fields in %q", text)
	}
	p := process{state: fields[0][0], zombie: fields[0][0] == 'Z' || fields[0][0] == 'X'}
	for i, field := range [][]byte{bytes.TrimSpace(text[:open]), fields[1], fields[2], fields[3], fields[19]} {
		n, err := strconv.Atoi(string(field))
		if err != nil {
			return process{}, fmt.Errorf("field %q is not a number", field)
		}
		*[]*int{&p.pid, &p.parent, &p.group, &p.session, &p.start}[i] = n
	}
	return p, nil
}

// mostEnvironment bounds what is read of one environment; Linux allows 6 MiB
// at most for arguments and environment together with usual limits.
const mostEnvironment = 8 << 20

// environOf reads the environment that a process started with into buffer. It
// is empty for a zombie, and for a process that may not be looked at.
func environOf(pid int, buffer *bytes.Buffer) []byte {
	buffer.Reset()
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	defer f.Close()
	if _, err := buffer.ReadFrom(io.LimitReader(f, mostEnvironment)); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return buffer.Bytes()
}

// hasEntry tells whether an environment holds exactly this KEY=value.
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

// processPeak is the largest resident set that a process has had, in bytes; 0 when not known.
func processPeak(pid int) int64 {
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
