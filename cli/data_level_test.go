package cli

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/cli/exit"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// newerGateway serves the store of a newer program.
type newerGateway struct {
	switchyardv1connect.UnimplementedBlobServiceHandler
	level int
}

func (g newerGateway) GetBlob(_ context.Context, req *connect.Request[v1.GetBlobRequest]) (*connect.Response[v1.GetBlobResponse], error) {
	if req.Msg.GetKey() != store.LevelKey(g.level) {
		return nil, connect.NewError(connect.CodeNotFound, store.ErrNotFound)
	}
	return connect.NewResponse(&v1.GetBlobResponse{Data: []byte("v9.0.0")}), nil
}

// TestProcessesRefuseTheStoreOfANewerProgram starts each process with a store that has the next data level.
func TestProcessesRefuseTheStoreOfANewerProgram(t *testing.T) {
	t.Parallel()
	dir, level := t.TempDir(), historyv1.ReadableDataLevel()+1
	kept := filepath.Join(dir, "yard.db.store")
	must(t, os.Mkdir(kept, 0o700))
	for name, text := range map[string]string{"~store": "", "identity": "A", store.LevelKey(level): "v9.0.0\n"} {
		must(t, os.WriteFile(filepath.Join(kept, name), []byte(text), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, "yard.db"), []byte("untouched"), 0o600))
	_, handler := switchyardv1connect.NewBlobServiceHandler(newerGateway{level: level})
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	before := treeOf(t, dir)
	for _, args := range [][]string{
		{"gateway", "--address", "127.0.0.1:0", "--store", kept},
		{"dev", "--db", filepath.Join(dir, "yard.db"), "--port", "0", "--gateway-port", "0", "--ui-port", "0"},
		{"run", write(t, "hello.yaml", hello), "--store", kept},
		{"worker", "--name", "n1", "--gateway", server.URL, "--metrics-address", "none", "--spool-dir", filepath.Join(t.TempDir(), "spool")},
	} {
		got := run(t, args...)
		want := fmt.Sprintf("has the data level %d since v9.0.0 has used it, and this Switchyard understands %d; start that version or a later one instead", level, level-1)
		if got.code != exit.CodeSystem || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%s: %+v", args[0], got)
		}
	}
	if after := treeOf(t, dir); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// treeOf returns the names and contents of all files in a folder.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var tree strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&tree, "%s: %q\n", path, text)
		return err
	}))
	return tree.String()
}

// TestDevRefusesTheDatabaseOfAnotherTemporal starts dev with the database of a later Temporal.
func TestDevRefusesTheDatabaseOfAnotherTemporal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "yard.db")
	header := make([]byte, 200)
	copy(header, "SQLite format 3\x00")
	binary.BigEndian.PutUint32(header[60:], 127<<24|110001) // Temporal 1.159
	copy(header[68:], "SwYd")
	must(t, os.WriteFile(db, header, 0o600))
	must(t, os.Mkdir(db+".store", 0o700))
	must(t, os.WriteFile(filepath.Join(db+".store", store.MarkerName), nil, 0o600))
	before := treeOf(t, dir)
	got := run(t, "dev", "--db", db, "--port", "0", "--gateway-port", "0", "--ui-port", "0")
	want := "switchyard: start Temporal: database " + db + " was last used with Temporal 1.159, and this Switchyard has 1."
	if got.code != exit.CodeSystem || !strings.Contains(got.stderr, want) {
		t.Errorf("%+v", got)
	}
	must(t, os.Remove(db+".lock"))
	if after := treeOf(t, dir); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}
