package session

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"switchyard/activities/statedir"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	socketSuffix = ".sock"
	lockSuffix   = ".lock"
	// dialTimeout is how long a session may take to accept a connection.
	dialTimeout = 2 * time.Second
)

// Folder returns the folder of this user's sessions below the scratch folder of a node, or in the state folder of this
// machine if scratch is empty. Nodes with the same folder share their sessions.
func Folder(scratch string) (string, error) {
	if scratch != "" {
		return filepath.Join(scratch, fmt.Sprintf("switchyard-agents-%d", os.Getuid())), nil
	}
	dir, err := statedir.Dir()
	return filepath.Join(dir, "agents"), err
}

// openFolder creates the folder if it is missing. It refuses a folder that another user could have created.
func openFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of sessions: %w", err)
	}
	if err := checkPrivate(dir); err != nil {
		return fmt.Errorf("open the folder of sessions: %w", err)
	}
	return nil
}

// CheckID returns an error if id is not a valid session id.
func CheckID(id string) error {
	if !v1.IsSessionID(id) {
		return fmt.Errorf("%q is not a valid session id: use at most %d letters, digits, '.', '_' or '-', beginning with a letter or digit", id, v1.MaxSessionID)
	}
	return nil
}

// List returns the ids of the live sessions, sorted. It returns none if the folder cannot be read.
func List(ctx context.Context, dir string) []string {
	if checkPrivate(dir) != nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var live []string
	for _, entry := range entries {
		id, isSocket := strings.CutSuffix(entry.Name(), socketSuffix)
		if !isSocket || CheckID(id) != nil {
			continue
		}
		conn, err := dial(ctx, dir, id)
		if err != nil {
			continue
		}
		conn.Close()
		live = append(live, id)
	}
	slices.Sort(live)
	return live
}

func dial(ctx context.Context, dir, id string) (net.Conn, error) {
	path, done, err := socketPath(dir, id)
	if err != nil {
		return nil, err
	}
	defer done()
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "unix", path)
}
