package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"go.temporal.io/api/enums/v1"
)

const (
	defaultNamespace = "default"
	defaultRetention = 30 * 24 * time.Hour
	// minRetention is the shortest retention that the server accepts for a local namespace.
	minRetention = time.Hour
	loopback     = "127.0.0.1"
)

// Options say what to start. The zero value is a server in memory on a free port of the loopback interface.
type Options struct {
	// DBFile is the database file; it is made when it does not exist. Empty: in memory, gone with the server.
	DBFile string
	// Address is the host:port that clients dial. Port 0 takes a free port; no host means loopback.
	// Empty: a free port on loopback.
	Address string
	// UIAddress is the host:port of the Web UI, read as Address is. Empty: no Web UI.
	UIAddress string
	// UIFallback has the Web UI take a free port if that of UIAddress is taken.
	UIFallback bool
	// UIHosts are the names, besides localhost, the machine's own and IP addresses, under which the Web UI answers.
	UIHosts []string
	// Logger gets the server's errors as information and its warnings at debug level, and nothing else of it.
	// Nil: they are dropped.
	Logger *slog.Logger
	// Namespace is made on the first start. Empty: "default".
	Namespace string
	// Retention is how long closed workflows are kept, at least an hour. Zero: 30 days.
	Retention time.Duration
	// SearchAttributes are registered in the namespace, by name. SQLite holds at most 10 of type Keyword and 3 of each
	// other type.
	SearchAttributes map[string]enums.IndexedValueType
}

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = net.JoinHostPort(loopback, "0")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Namespace == "" {
		o.Namespace = defaultNamespace
	}
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	return o
}

// validate reports every problem at once, by field name.
func (o Options) validate() error {
	var problems []error
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		problems = append(problems, fmt.Errorf("address %q: %w", o.Address, err))
	}
	if o.UIAddress != "" {
		if _, _, err := net.SplitHostPort(o.UIAddress); err != nil {
			problems = append(problems, fmt.Errorf("ui address %q: %w", o.UIAddress, err))
		}
	}
	if o.Retention < minRetention {
		problems = append(problems, fmt.Errorf("retention %s: must be at least %s", o.Retention, minRetention))
	}
	return errors.Join(problems...)
}

// databasePath is the one absolute name of the database file, so that two spellings of it meet at the same lock.
func (o Options) databasePath() (string, error) {
	path, err := filepath.Abs(o.DBFile)
	if err != nil {
		return "", err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("database %s: its folder: %w", o.DBFile, err)
	}
	path = filepath.Join(folder, filepath.Base(path))
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	return path, nil
}
