package cli

import (
	"archive/tar"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/sftp"

	"switchyard/activities/sessions/wire"
	"switchyard/cli/archive"
	v1 "switchyard/proto/switchyard/v1"
)

// fakeSessions is the session endpoint of a gateway with one task behind it.
type fakeSessions struct {
	// dir holds the files of the task.
	dir string
	// refusal is the reply to each header, unless it is nil.
	refusal *v1.SessionReply
	// deaf leaves every header without a reply.
	deaf bool

	mu      sync.Mutex
	headers []*v1.SessionHeader
	links   []*wire.Session
}

// count returns the number of received headers.
func (f *fakeSessions) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.headers)
}

// header returns the header received last.
func (f *fakeSessions) header(t *testing.T) *v1.SessionHeader {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.headers) == 0 {
		t.Fatal("no header has come")
	}
	return f.headers[len(f.headers)-1]
}

// cut closes all connections.
func (f *fakeSessions) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, link := range f.links {
		_ = link.Close()
	}
	f.links = nil
}

// ServeHTTP serves one session connection.
func (f *fakeSessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := wire.Accept(w, r)
	if err != nil {
		return
	}
	link := wire.NewSession(conn, false)
	f.mu.Lock()
	f.links = append(f.links, link)
	f.mu.Unlock()
	go func() {
		for {
			stream, err := link.Accept()
			if err != nil {
				return
			}
			go f.serve(stream)
		}
	}()
}

func (f *fakeSessions) serve(conn wire.Conn) {
	defer conn.Close()
	h, err := wire.ReadHeader(conn)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.headers = append(f.headers, h)
	refusal := f.refusal
	f.mu.Unlock()
	if f.deaf {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	if refusal == nil && h.GetKind() == "connect" && h.GetPort() == 81 {
		refusal = &v1.SessionReply{Code: "unavailable", Error: "nothing listens \x1b[31mon port 81"}
	}
	if refusal != nil {
		wire.Refuse(conn, refusal.GetCode(), refusal.GetError())
		return
	}
	if wire.WriteMessage(conn, &v1.SessionReply{RunId: fakeRun, Task: "build", Claim: 1, Node: "n"}) != nil {
		return
	}
	s := &fakeSession{conn: conn}
	switch h.GetKind() {
	case "connect":
		text, _ := io.ReadAll(conn) // up to the end of the client's stream
		_, _ = conn.Write([]byte(strings.ToUpper(string(text))))
	case "sftp":
		server, err := sftp.NewServer(conn, sftp.WithServerWorkingDirectory(f.dir))
		if err == nil {
			_ = server.Serve()
		}
	case "read_tar":
		s.end(0, archive.Pack(s, filepath.Join(f.dir, h.GetPath()), filepath.Base(filepath.Join(f.dir, h.GetPath())), func(string, string) {}))
	case "write_tar":
		target := archive.Target{Dir: filepath.Join(f.dir, h.GetPath()), Name: "."}
		if h.GetRename() {
			target.Dir, target.Name = filepath.Split(target.Dir)
		}
		s.end(0, s.unpack(target))
	case "exec":
		s.exec(h.GetExec())
	}
}

// fakeSession is one session as a stream of frames.
type fakeSession struct {
	conn wire.Conn
	rest []byte
}

// Write sends standard output.
func (s *fakeSession) Write(p []byte) (int, error) {
	return len(p), wire.WriteMessage(s.conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stdout{Stdout: p}})
}

func (s *fakeSession) end(code int, err error) {
	e := &v1.SessionExit{Code: int32(code)}
	if err != nil {
		e.Error = err.Error()
	}
	_ = wire.WriteMessage(s.conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Exit{Exit: e}})
	_ = s.conn.CloseWrite()
	_, _ = io.Copy(io.Discard, s.conn)
}

// Read reads standard input and records all other frames.
func (s *fakeSession) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		frame := &v1.SessionFrame{}
		if err := wire.ReadMessage(s.conn, frame); err != nil {
			return 0, err
		}
		switch f := frame.GetFrame().(type) {
		case *v1.SessionFrame_Stdin:
			s.rest = f.Stdin
		case *v1.SessionFrame_StdinEnd:
			return 0, io.EOF
		case *v1.SessionFrame_Signal:
			fmt.Fprintf(s, "%s\n", f.Signal)
			if f.Signal == "TERM" {
				return 0, errTerminated
			}
		case *v1.SessionFrame_Resize:
			fmt.Fprintf(s, "%dx%d\r\n", f.Resize.GetColumns(), f.Resize.GetRows())
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

var errTerminated = fmt.Errorf("terminated")

// exec runs one of the scripted programs.
func (s *fakeSession) exec(e *v1.SessionExec) {
	name := strings.Join(e.GetCommand(), " ")
	switch {
	case name == "cat":
		_, err := io.Copy(s, s)
		s.end(0, err)
	case strings.HasPrefix(name, "exit"):
		code := 0
		_, _ = fmt.Sscanf(name, "exit %d", &code)
		_, _ = s.Write([]byte("out\n"))
		_ = wire.WriteMessage(s.conn, &v1.SessionFrame{Frame: &v1.SessionFrame_Stderr{Stderr: []byte("err\n")}})
		s.end(code, nil)
	case name == "none":
		s.end(0, fmt.Errorf("there is no program \x1b]0;x\x07none"))
	case name == "lose":
		_, _ = s.Write([]byte("ready\n"))
		wire.Abort(s.conn, "the link to node n was lost")
	default: // a shell, which answers lines up to "exit"
		fmt.Fprintf(s, "ready %dx%d\r\n", e.GetSize().GetColumns(), e.GetSize().GetRows())
		var typed []byte
		b := make([]byte, 1)
		for {
			if _, err := s.Read(b); err == errTerminated {
				s.end(143, nil)
				return
			} else if err != nil {
				return
			}
			if b[0] != '\r' {
				typed = append(typed, b[0])
				continue
			}
			fmt.Fprintf(s, "<%q>\r\n", typed)
			if string(typed) == "exit" {
				s.end(7, nil)
				return
			}
			typed = nil
		}
	}
}

// unpack writes the files of a trusted archive.
func (s *fakeSession) unpack(target archive.Target) error {
	in, top := tar.NewReader(s), ""
	for {
		h, err := in.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, s)
			return err
		} else if err != nil {
			return err
		}
		name := filepath.Join(target.Dir, h.Name)
		if target.Name != "." {
			first, rest, _ := strings.Cut(h.Name, "/")
			if top == "" {
				top = first
			}
			name = filepath.Join(target.Dir, target.Name, rest)
		}
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(name, 0o700); err != nil {
				return err
			}
			continue
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return err
		}
	}
}
