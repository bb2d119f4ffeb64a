package qemu

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
)

func TestFoldersOfMachines(t *testing.T) {
	if name := folderName("run@chain/task/c1"); len(name) != 12 || name == folderName("run@chain/task/c2") {
		t.Errorf("name %s", name)
	}
	dir := filepath.Join(t.TempDir(), "machines")
	r := record{
		ID: "run/desk/c1", Identity: executor.Identity{Run: "run", Task: "desk", Node: "n", Index: -1, Claim: 1}, Env: map[string]string{"A": "b"},
		User: "ann", HostKey: "ssh-ed25519 A", StartedAt: time.Unix(1, 0).UTC(),
	}
	f, err := newFolder(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.readRecord(); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("record %+v, error %v", got, err)
	}
	for _, path := range []string{string(f), f.file(recordFile)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v, error %v", path, info.Mode(), err)
		}
	}
	if _, err := newFolder(dir, r); err == nil {
		t.Error("an attempt has two folders")
	}
	// Another worker is creating the fresh folder, and the stale one was never finished.
	fresh, stale := filepath.Join(dir, newPrefix+"1"), filepath.Join(dir, newPrefix+"2")
	for _, path := range []string{fresh, stale} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(stale, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if found, err := folders(dir); err != nil || len(found) != 1 || found[0] != f {
		t.Errorf("folders %v, error %v", found, err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without a record stays: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
	if found, err := folders(filepath.Join(dir, "none")); err != nil || len(found) > 0 {
		t.Errorf("folders %v, error %v", found, err)
	}
}

func TestRecordsOfOtherMachinesAreRejected(t *testing.T) {
	dir := t.TempDir()
	f := folder(filepath.Join(dir, folderName("a")))
	if _, err := f.readRecord(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if err := os.Mkdir(string(f), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{`{"ID":"b"}`: "belongs to another machine", `{"ID":`: "unexpected end", "": "unexpected end"} {
		if err := os.WriteFile(f.file(recordFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.readRecord(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestFoldersThatAreTooDeepAreRefused(t *testing.T) {
	// The folder of a machine and its longest socket name take 18 bytes.
	fits := "/" + strings.Repeat("x", maxSocketPath-18-1)
	if err := checkSocketPaths(fits); err != nil {
		t.Error(err)
	}
	_, err := New(Options{Dir: fits + "x"})
	if err == nil || !strings.Contains(err.Error(), "have 108 bytes and the limit is 107; set a shorter --scratch-dir for the worker") {
		t.Errorf("error %v", err)
	}
}
