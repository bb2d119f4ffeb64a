package executortest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"switchyard/activities/executor"
)

// entry describes an entry of an archive.
type entry struct {
	kind byte
	// text is the content of a file, or the target of a link.
	text string
	mode int64
}

var modified = time.Date(2021, 3, 4, 5, 6, 7, 0, time.UTC)

// archive returns an archive of entries in order. entries alternates between names and values of type
// entry.
func archive(t *testing.T, entries ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		name, e := entries[i].(string), entries[i+1].(entry)
		header := &tar.Header{Name: name, Typeflag: e.kind, Mode: e.mode, ModTime: modified}
		if e.kind == tar.TypeReg {
			header.Size = int64(len(e.text))
		} else {
			header.Linkname = e.text
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			if _, err := io.WriteString(w, e.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read returns the entries of an archive of a path in the attempt, by name.
func (h InsideHarness) read(t *testing.T, in executor.Inside, from string) map[string]entry {
	t.Helper()
	var b bytes.Buffer
	if err := in.ReadTar(t.Context(), h.User, from, &b); err != nil {
		t.Fatalf("read %s: %v", from, err)
	}
	found := map[string]entry{}
	for r := tar.NewReader(&b); ; {
		header, err := r.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		e := entry{kind: header.Typeflag, text: header.Linkname, mode: header.Mode}
		if header.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			e.text = string(text)
		}
		if header.Typeflag != tar.TypeSymlink && !header.ModTime.Equal(modified) {
			t.Errorf("%s was modified at %v, want %v", header.Name, header.ModTime, modified)
		}
		if header.Typeflag == tar.TypeSymlink {
			e.mode = 0
		}
		found[header.Name] = e
	}
}

// emptyDir creates a new directory in the attempt and returns its path.
func (h InsideHarness) emptyDir(t *testing.T, in executor.Inside) string {
	t.Helper()
	name := fmt.Sprintf("inside-%d-%d", time.Now().UnixNano(), serial.Add(1))
	h.write(t, in, h.Dir(t), archive(t, name, entry{tar.TypeDir, "", 0o755}))
	return path.Join(h.Dir(t), name)
}

func (h InsideHarness) write(t *testing.T, in executor.Inside, to string, archive []byte) {
	t.Helper()
	if err := in.WriteTar(t.Context(), h.User, to, false, bytes.NewReader(archive)); err != nil {
		t.Fatalf("write %s: %v", to, err)
	}
}

func (h InsideHarness) tarBothWays(t *testing.T) {
	in := h.Enter(t)
	dir := h.emptyDir(t, in)
	large := strings.Repeat("\x00\xff large ", 300_000)
	h.write(t, in, dir, archive(t,
		"top/", entry{tar.TypeDir, "", 0o750},
		"top/file", entry{tar.TypeReg, "text", 0o640},
		"top/program", entry{tar.TypeReg, "#!/bin/sh\n", 0o755},
		"top/sub/", entry{tar.TypeDir, "", 0o555},
		"top/sub/large", entry{tar.TypeReg, large, 0o600},
		"top/sub/link", entry{tar.TypeSymlink, "../file", 0},
		"top/sub/same", entry{tar.TypeLink, "top/file", 0o640},
		"top/a name\n", entry{tar.TypeReg, "", 0o644},
	))
	got := h.read(t, in, path.Join(dir, "top"))
	want := map[string]entry{
		"top/": {tar.TypeDir, "", 0o750}, "top/program": {tar.TypeReg, "#!/bin/sh\n", 0o755},
		"top/sub/": {tar.TypeDir, "", 0o555}, "top/sub/large": {tar.TypeReg, large, 0o600},
		"top/sub/link": {tar.TypeSymlink, "../file", 0}, "top/a name\n": {tar.TypeReg, "", 0o644},
		"top/file": {tar.TypeReg, "text", 0o640}, "top/sub/same": {tar.TypeLink, "top/file", 0o640},
	}
	if h.NoHardLinks {
		want["top/sub/same"] = want["top/file"]
	}
	if !maps.Equal(got, want) {
		t.Errorf("read %v\nwant %v", names(got), names(want))
		for name, e := range want {
			if g := got[name]; g != e {
				t.Errorf("%s: %c %o, %d bytes; want %c %o, %d bytes", name, g.kind, g.mode, len(g.text), e.kind, e.mode, len(e.text))
			}
		}
	}
	// Writing replaces a file as a whole. Reading follows a link that is named explicitly.
	h.write(t, in, path.Join(dir, "top"), archive(t, "file", entry{tar.TypeReg, "other text", 0o600}))
	if got := h.read(t, in, path.Join(dir, "top/sub/link")); got["link"] != (entry{tar.TypeReg, "other text", 0o600}) {
		t.Errorf("the file is %+v", got)
	}
	client, _ := h.client(t, t.Context(), in)
	if err := client.Chmod(path.Join(dir, "top/sub"), 0o755); err != nil { // otherwise its user could not remove it
		t.Error(err)
	}
}

func (h InsideHarness) tarRename(t *testing.T) {
	in := h.Enter(t)
	dir := h.emptyDir(t, in)
	rename := func(name string, archive []byte) error {
		return in.WriteTar(t.Context(), h.User, path.Join(dir, name), true, bytes.NewReader(archive))
	}
	if err := rename("new", archive(t, "old", entry{tar.TypeReg, "text", 0o644})); err != nil {
		t.Error(err)
	}
	if err := rename("tree", archive(t, "x/", entry{tar.TypeDir, "", 0o755}, "x/y", entry{tar.TypeReg, "leaf", 0o644}, "x/z", entry{tar.TypeSymlink, "y", 0})); err != nil {
		t.Error(err)
	}
	got := h.read(t, in, dir+"/new")
	maps.Copy(got, h.read(t, in, dir+"/tree"))
	want := map[string]entry{"new": {tar.TypeReg, "text", 0o644}, "tree/": {tar.TypeDir, "", 0o755}, "tree/y": {tar.TypeReg, "leaf", 0o644}, "tree/z": {tar.TypeSymlink, "y", 0}}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := rename("two", archive(t, "a", entry{tar.TypeReg, "", 0o644}, "b", entry{tar.TypeReg, "", 0o644})); err == nil {
		t.Error("two files are made under one name")
	}
}

func (h InsideHarness) tarRefused(t *testing.T) {
	in := h.Enter(t)
	dir := h.emptyDir(t, in)
	file := entry{tar.TypeReg, "outside", 0o644}
	for name, bad := range map[string][]byte{
		"an absolute name":          archive(t, "/tmp/outside", file),
		"a name that leads up":      archive(t, "../outside", file),
		"a name that hides it":      archive(t, "a/../../outside", file),
		"an absolute link":          archive(t, "link", entry{tar.TypeSymlink, "/etc", 0}),
		"a link that leads up":      archive(t, "a/link", entry{tar.TypeSymlink, "../../outside", 0}),
		"a file behind a link":      archive(t, "d/", entry{tar.TypeDir, "", 0o755}, "link", entry{tar.TypeSymlink, "d", 0}, "link/file", file),
		"a hard link that leads up": archive(t, "link", entry{tar.TypeLink, "../outside", 0}),
		"an absolute hard link":     archive(t, "link", entry{tar.TypeLink, "/etc/passwd", 0}),
		"a device":                  archive(t, "null", entry{tar.TypeChar, "", 0o666}),
		"a pipe":                    archive(t, "pipe", entry{tar.TypeFifo, "", 0o666}),
		"no archive":                []byte(strings.Repeat("this is no archive ", 100)),
	} {
		err := in.WriteTar(t.Context(), h.User, dir, false, bytes.NewReader(bad))
		if err == nil {
			t.Errorf("%s is accepted", name)
		} else if strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Errorf("%s: the error is not one line: %q", name, err)
		}
	}
	for name := range h.readLoosely(t, in, h.Dir(t)) {
		if strings.HasSuffix(name, "outside") {
			t.Errorf("%s was made", name)
		}
	}
}

// tarBrokenOff checks that an incomplete file of a truncated archive does not appear.
func (h InsideHarness) tarBrokenOff(t *testing.T) {
	in := h.Enter(t)
	dir := h.emptyDir(t, in)
	whole := archive(t, "first", entry{tar.TypeReg, "text", 0o644}, "second", entry{tar.TypeReg, strings.Repeat("long ", 200_000), 0o644})
	broken := errors.New("the client is gone")
	err := in.WriteTar(t.Context(), h.User, dir, false, io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), failing{broken}))
	if err == nil {
		t.Error("an archive that breaks off is no error")
	}
	// The first file is complete, but may not have been unpacked. A session may still be cleaning up after
	// its caller has left.
	var there map[string]bool
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		there = h.readLoosely(t, in, dir)
		delete(there, "")
		if delete(there, "first"); len(there) == 0 {
			return
		}
	}
	t.Errorf("%q are there", names(there))
}

// readLoosely returns the names of the files below a directory, relative to it.
func (h InsideHarness) readLoosely(t *testing.T, in executor.Inside, dir string) map[string]bool {
	t.Helper()
	var b bytes.Buffer
	if err := in.ReadTar(t.Context(), h.User, dir, &b); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for r := tar.NewReader(&b); ; {
		header, err := r.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(header.Name, path.Base(dir)+"/")] = true
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func (h InsideHarness) tarMissing(t *testing.T) {
	in := h.Enter(t)
	missing := path.Join(h.Dir(t), "no\x1b[31msuch")
	for _, err := range []error{
		in.ReadTar(t.Context(), h.User, missing, io.Discard),
		in.WriteTar(t.Context(), h.User, missing, false, bytes.NewReader(archive(t, "x", entry{tar.TypeReg, "", 0o644}))),
	} {
		if err == nil || !strings.Contains(err.Error(), `no\x1b[31msuch`) {
			t.Errorf("error %q, want one that names the path", err)
		}
	}
}

// client returns an SFTP client of an attempt, and a channel that receives the result of ServeFiles.
func (h InsideHarness) client(t *testing.T, ctx context.Context, in executor.Inside) (client *sftp.Client, served chan error) {
	t.Helper()
	near, far := net.Pipe()
	served = make(chan error, 1)
	go func() {
		served <- in.ServeFiles(ctx, h.User, far)
		far.Close()
	}()
	client, err := sftp.NewClientPipe(near, near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		near.Close()
	})
	return client, served
}

func (h InsideHarness) sftp(t *testing.T) {
	in := h.Enter(t)
	dir := h.emptyDir(t, in)
	client, served := h.client(t, t.Context(), in)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.Mkdir(dir + "/sub"))
	f, err := client.Create(dir + "/sub/file")
	must(err)
	content := strings.Repeat("\x00content\xff", 100_000)
	_, err = io.Copy(f, strings.NewReader(content))
	must(errors.Join(err, f.Close()))
	must(client.Chmod(dir+"/sub/file", 0o741))
	must(client.Chtimes(dir+"/sub/file", modified, modified))
	must(client.Symlink("sub/file", dir+"/link"))
	must(client.Rename(dir+"/sub/file", dir+"/sub/moved"))
	must(client.Symlink("/", dir+"/root"))
	info, err := client.Stat(dir + "/sub/moved")
	must(err)
	if info.Mode() != 0o741 || !info.ModTime().Equal(modified) || info.Size() != int64(len(content)) {
		t.Errorf("mode %v, modified %v, %d bytes", info.Mode(), info.ModTime(), info.Size())
	}
	f, err = client.Open(dir + "/sub/moved")
	must(err)
	got, err := io.ReadAll(f)
	must(errors.Join(err, f.Close()))
	if string(got) != content {
		t.Errorf("%d bytes are read, want %d", len(got), len(content))
	}
	if target, err := client.ReadLink(dir + "/link"); err != nil || target != "sub/file" {
		t.Errorf("the link leads to %q, error %v", target, err)
	}
	infos, err := client.ReadDir(dir)
	must(err)
	var found []string
	for _, info := range infos {
		found = append(found, info.Name())
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"link", "root", "sub"}) {
		t.Errorf("the directory has %q", found)
	}
	if _, err := client.Stat(dir + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v of a file that is not there", err)
	}
	if _, err := client.Open("/dev/zero"); err == nil && !h.OpensDevices {
		t.Error("a device can be opened")
	}
	must(client.Remove(dir + "/sub/moved"))
	must(client.RemoveDirectory(dir + "/sub"))
	must(client.Close())
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("when the client has left: %v", err)
		}
	case <-time.After(patience):
		t.Error("the files are still served when the client has left")
	}
}

func (h InsideHarness) sftpEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, served := h.client(t, ctx, h.Enter(t))
	cancel()
	select {
	case err := <-served:
		if !ended(err) {
			t.Errorf("error %v", err)
		}
	case <-time.After(patience):
		t.Error("the files are still served when the context has ended")
	}
}
