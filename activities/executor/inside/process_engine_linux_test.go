//go:build engines

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchyard/dev/testneeds"
)

func needRoot(t *testing.T) {
	t.Helper()
	if !canSwitch() {
		testneeds.Missing(t, "this test needs root")
	}
}

func TestInsideConformanceInForeignRoots(t *testing.T) {
	needRoot(t)
	for name, one := range map[string]struct {
		user string
		id   int
	}{"its own user": {"", 4321}, "root": {"0", 0}, "a name": {"ann", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance(t, "/tmp", one.user, func(t *testing.T) *target { return startTarget(t, one.id, true) })
		})
	}
}

func TestDialAndListenUseTheNetworkOfTheProcess(t *testing.T) {
	needRoot(t)
	one := startTarget(t, 4321, true)
	ours, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	port := ours.Addr().(*net.TCPAddr).Port
	if conn, err := one.Dial(t.Context(), port); err == nil {
		conn.Close()
		t.Error("a port of this machine is dialled instead of one of the process")
	}
	theirs, err := one.Listen(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	text, err := os.ReadFile(one.path("net/tcp"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("0100007F:%04X 00000000:0000 0A", port); !strings.Contains(string(text), want) {
		t.Errorf("no socket listens in its network: %s", text)
	}
	for range 200 { // threads that have entered the network serve nothing else
		if conn, err := one.Dial(t.Context(), port); err != nil {
			t.Fatal(err)
		} else {
			conn.Close()
		}
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	// A thread that has entered the network ends.
	testneeds.Await(t, "no thread is in another network", func() bool {
		tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
		return err == nil && !slices.ContainsFunc(tasks, func(task string) bool {
			space, err := os.Readlink(task)
			return err == nil && space != own
		})
	})
}

// Links resolve within the process's root, and files that the user may not read stay unreadable.
func TestLinksStayInTheRoot(t *testing.T) {
	needRoot(t)
	one := startTarget(t, 4321, true)
	secret := filepath.Join(t.TempDir(), "secret")
	closed := filepath.Join(one.root, "closed")
	if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o644), os.WriteFile(closed, []byte("closed"), 0o600),
		os.Symlink(secret, filepath.Join(one.root, "tmp/absolute")), os.Symlink("../../../../.."+secret, filepath.Join(one.root, "tmp/relative")),
		os.Symlink("/", filepath.Join(one.root, "tmp/root")), os.Symlink("/proc/1/root"+secret, filepath.Join(one.root, "tmp/proc"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"absolute", "relative", "proc", "root" + secret, "../../../.." + secret, "/closed"} {
		var b bytes.Buffer
		err := one.ReadTar(t.Context(), path, &b)
		if err == nil || strings.Contains(b.String(), "secret") || strings.Contains(b.String(), "closed") {
			t.Errorf("%s can be read, error %v", path, err)
		}
		if e, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%s: error %v is no *Error", path, err)
		} else if path == "/closed" && !errors.Is(e, os.ErrPermission) {
			t.Errorf("error %v, want one of permissions", err)
		} else if path == "absolute" && !errors.Is(e, os.ErrNotExist) {
			t.Errorf("error %v, want one of a file that is not there", err)
		}
	}
}

// Every thread of a helper runs as the user and has no privileges beyond the user's.
func TestHelperHasNoPrivileges(t *testing.T) {
	needRoot(t)
	for _, id := range []int{4321, 0} {
		one := startTarget(t, id, true)
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- one.ServeFiles(t.Context(), far) }()
		if _, err := near.Write([]byte{0, 0, 0, 5, 1, 0, 0, 0, 3}); err != nil { // INIT, version 3
			t.Fatal(err)
		}
		if _, err := near.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		helpers := 0
		paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil || !strings.HasPrefix(string(text), Name+"\x00") {
				continue
			}
			if root, err := os.Readlink(filepath.Join(filepath.Dir(path), "root")); err != nil || root != one.root {
				continue
			}
			helpers++
			threads, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "task/*/status"))
			for _, thread := range threads {
				status, err := os.ReadFile(thread)
				if err != nil {
					t.Fatal(err)
				}
				checkStatus(t, id, string(status))
			}
		}
		if helpers != 1 {
			t.Errorf("%d helpers run, want one", helpers)
		}
		near.Close()
		far.Close()
		<-served
	}
}

func checkStatus(t *testing.T, id int, status string) {
	t.Helper()
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(value)
		switch name {
		case "Uid", "Gid":
			for _, field := range fields {
				if field != strconv.Itoa(id) {
					t.Errorf("%s of a thread is %v, want %d", name, fields, id)
				}
			}
		case "Groups":
			if len(fields) > 0 {
				t.Errorf("a thread is in the groups %v", fields)
			}
		case "NoNewPrivs":
			if value != "\t1" {
				t.Error("a thread may get new privileges")
			}
		case "CapInh", "CapPrm", "CapEff", "CapAmb":
			set, err := strconv.ParseUint(fields[0], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			allowed := capabilities(0)
			if id == 0 {
				allowed = filePrivileges | enterPrivileges
			}
			if capabilities(set)&^allowed != 0 {
				t.Errorf("%s of a thread is %s", name, fields[0])
			}
		}
	}
}

func TestUsersComeFromTheRootOfTheProcess(t *testing.T) {
	needRoot(t)
	one := startTarget(t, 0, true)
	// A file outside the root is not read, although a link in the root names it.
	passwd := filepath.Join(t.TempDir(), "passwd")
	if err := errors.Join(os.WriteFile(passwd, []byte("eve:x:7:7::/:/bin/sh\n"), 0o644), os.Rename(filepath.Join(one.root, "etc/passwd"), filepath.Join(one.root, "etc/p")),
		os.Symlink("/etc/p", filepath.Join(one.root, "etc/passwd"))); err != nil {
		t.Fatal(err)
	}
	u, err := one.User("ann")
	if err != nil || u.UID != 1234 || u.GID != 50 || fmt.Sprint(u.Groups) != "[10 29]" || u.Home != "/home/ann" || u.Shell != "/bin/zsh" {
		t.Errorf("%+v, error %v", u, err)
	}
	if err := errors.Join(os.Remove(filepath.Join(one.root, "etc/passwd")), os.Symlink(passwd, filepath.Join(one.root, "etc/passwd"))); err != nil {
		t.Fatal(err)
	}
	if u, err := one.User("eve"); err == nil {
		t.Errorf("a user of this machine is found: %+v", u)
	}
}
