package watchdogproc

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/procfs"
)

// A worker that stops leaves running attempts to the next worker of its node, and the watchdog keeps what that worker needs: a text
// and some open files, such as the ends of the pipes that the program writes to. Whoever connects to the socket of a kept attempt
// receives them, and takes the attempt over by sending takeOver. Until then the watchdog enforces the lease of the attempt.

const (
	// keptFiles bounds the open files of a kept attempt.
	keptFiles = 8
	// maxKept bounds the text of a kept attempt, in bytes.
	maxKept = 16 << 20
	// takeOver is sent by the worker that takes an attempt over, and answered with itself, or with stopped if the watchdog has already
	// asked the attempt to stop.
	takeOver, stopped = 'T', 'S'
	// Keeps answers the message "keep" if the attempt is kept from now on, and keepsNot if it is not.
	Keeps, keepsNot = 'K', 'N'
	// takePatience bounds the exchange with a worker.
	takePatience = 10 * time.Second
	// endedPatience is how long an attempt that has ended by itself is kept beyond its lease.
	endedPatience = time.Hour
	// keptPause is the longest time between two looks at the kept attempts after the worker has ended.
	keptPause = 200 * time.Millisecond
)

// kept is an attempt that its worker has left.
type kept struct {
	socket string
	listen net.Listener
	text   []byte
	files  []int
}

// Kept is what a watchdog keeps of an attempt, in the process that asks for it.
type Kept struct {
	Text  []byte
	Files []*os.File
	conn  *net.UnixConn
}

// Dial returns what is kept of an attempt, by the path of its socket. The caller must call Close. An error means that no watchdog
// keeps the attempt: one that does not answer is killed, because it does not enforce leases either.
func Dial(socket string) (*Kept, error) {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	conn, err := net.Dial("unix", short(dir, socket))
	if err != nil {
		return nil, err
	}
	k := &Kept{conn: conn.(*net.UnixConn)}
	if err := k.receive(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errors.Join(err, k.killWatchdog())
		}
		k.Close()
		return nil, fmt.Errorf("receive what is kept at %s: %w", socket, err)
	}
	return k, nil
}

// short returns a path of a socket that is short enough to be one, while its directory is open.
func short(dir *os.File, socket string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + filepath.Base(socket)
}

func (k *Kept) receive() error {
	_ = k.conn.SetDeadline(time.Now().Add(takePatience))
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(4*keptFiles))
	n, oobn, _, _, err := k.conn.ReadMsgUnix(head[:], oob)
	if err != nil {
		return err
	}
	files, err := received(oob[:oobn])
	for _, fd := range files {
		k.Files = append(k.Files, os.NewFile(uintptr(fd), "kept"))
	}
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(k.conn, head[n:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxKept {
		return fmt.Errorf("%d bytes are too many", size)
	}
	k.Text = make([]byte, size)
	_, err = io.ReadFull(k.conn, k.Text)
	return err
}

// killWatchdog kills the process that listens on the socket.
func (k *Kept) killWatchdog() error {
	raw, err := k.conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return unix.Kill(int(peer.Pid), unix.SIGKILL)
}

// received returns the descriptors in the control part of a message.
func received(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	var files []int
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			files = append(files, fds...)
		}
	}
	return files, err
}

// Take takes the attempt over. The watchdog then forgets it. isStopped reports that it has already asked the attempt to stop. After an
// error it may still keep the attempt.
func (k *Kept) Take() (isStopped bool, err error) {
	answer := []byte{takeOver}
	if _, err := k.conn.Write(answer); err != nil {
		return false, err
	}
	_, err = io.ReadFull(k.conn, answer)
	return answer[0] == stopped, err
}

// Close closes the connection and those Files that are not nil.
func (k *Kept) Close() {
	k.conn.Close()
	for _, f := range k.Files {
		if f != nil {
			f.Close()
		}
	}
}

// KeepMessage is the argument of the message "keep", in JSON form. The open files come with the message.
type KeepMessage struct {
	// Name is the name of the registered attempt, Socket the path of the socket to make, and Text what is kept.
	Name   string          `json:"name"`
	Socket string          `json:"socket"`
	Text   json.RawMessage `json:"text"`
	Files  int             `json:"files"`
	// Since and Sessions are those of the search for the processes of the attempt, without a cgroup.
	Since    int   `json:"since,omitempty"`
	Sessions []int `json:"sessions,omitempty"`
}

// keep keeps an attempt from now on. The caller holds mu.
func (w *Table) keep(argument string) error {
	var m KeepMessage
	if err := json.Unmarshal([]byte(argument), &m); err != nil {
		return err
	}
	if m.Files > len(w.arrived) {
		return fmt.Errorf("%d files for %s, and %d have come", m.Files, m.Name, len(w.arrived))
	}
	files := w.arrived[:m.Files]
	w.arrived = w.arrived[m.Files:]
	k := &kept{socket: m.Socket, text: m.Text, files: files}
	if err := k.open(); err != nil {
		k.close()
		w.answers = append(w.answers, keepsNot)
		return nil
	}
	w.kept[m.Name] = k
	if a := w.Attempts[m.Name]; a != nil && w.Cgroup == "" {
		a.finder = procfs.NewSearch(m.Name)
		a.finder.Since = m.Since
		for _, session := range m.Sessions {
			a.finder.Sessions[session] = true
		}
	}
	w.answers = append(w.answers, Keeps)
	go w.serve(m.Name, k)
	return nil
}

// keeps answers the messages "keep", and reports whether there were some.
func (w *Table) keeps(socket int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.answers) == 0 {
		return false
	}
	_, _ = unix.Write(socket, w.answers) // a worker that has gone needs no answer
	w.answers = nil
	return true
}

func (k *kept) open() error {
	if err := os.MkdirAll(filepath.Dir(k.socket), 0o700); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(k.socket))
	if err != nil {
		return err
	}
	defer dir.Close()
	_ = os.Remove(k.socket)
	if k.listen, err = net.Listen("unix", short(dir, k.socket)); err != nil {
		return err
	}
	k.listen.(*net.UnixListener).SetUnlinkOnClose(false)
	return nil
}

// close lets go of what is kept.
func (k *kept) close() {
	if k.listen != nil {
		k.listen.Close()
		_ = os.Remove(k.socket)
	}
	for _, fd := range k.files {
		unix.Close(fd)
	}
}

// serve answers on the socket of an attempt until the attempt is taken over or dropped.
func (w *Table) serve(name string, k *kept) {
	for {
		conn, err := k.listen.Accept()
		if err != nil {
			return
		}
		if k.send(conn.(*net.UnixConn)) == nil {
			w.mu.Lock()
			if w.kept[name] == k {
				answer := []byte{takeOver}
				if a := w.Attempts[name]; a != nil && a.Stopped {
					answer[0] = stopped
				}
				delete(w.Attempts, name)
				w.drop(name)
				_, _ = conn.Write(answer)
			}
			w.mu.Unlock()
		}
		conn.Close()
	}
}

// send sends what is kept to a worker. It returns nil if the worker takes the attempt over.
func (k *kept) send(conn *net.UnixConn) error {
	_ = conn.SetDeadline(time.Now().Add(takePatience))
	head := binary.BigEndian.AppendUint32(nil, uint32(len(k.text)))
	if _, _, err := conn.WriteMsgUnix(head, unix.UnixRights(k.files...), nil); err != nil {
		return err
	}
	if _, err := conn.Write(k.text); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, head[:1])
	return err
}

// keepOn enforces the leases of the kept attempts until none is left.
func (w *Table) keepOn() {
	for {
		w.mu.Lock()
		wait, left := w.enforce(), len(w.kept)
		w.mu.Unlock()
		if left == 0 {
			if w.Cgroup != "" {
				cgroup.RemoveEmpty(w.Cgroup) // what another worker has taken over stays
			}
			return
		}
		time.Sleep(min(max(wait, 0), keptPause))
	}
}

// settle handles a kept attempt at a deadline: StopAt, or KillAt if over is set. It reports whether the attempt needs nothing more
// now. One that has ended by itself before its lease is kept for a while longer, since its result counts. One that has been ended
// is dropped.
func (w *Table) settle(name string, a *Attempt, over bool) bool {
	if w.kept[name] == nil || len(w.pids(name, a)) > 0 {
		return false
	}
	if !over && !a.Stopped && !a.ended {
		a.ended = true
		a.StopAt = executor.Now().Add(endedPatience)
		a.KillAt = a.StopAt
		return true
	}
	if w.Cgroup != "" {
		_ = cgroup.Remove(w.directory(name))
	}
	delete(w.Attempts, name)
	w.drop(name)
	return true
}

// drop lets go of what is kept of an attempt, if anything is. The caller holds mu.
func (w *Table) drop(name string) {
	if k := w.kept[name]; k != nil {
		delete(w.kept, name)
		k.close()
	}
}
