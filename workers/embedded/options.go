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

// Options configures a server. The zero value is a server in memory on a free loopback port.
type Options struct {
	// DBFile is the database file, which is created if it does not exist. "" means a database in memory that is lost
	// when the server stops.
	DBFile string
	// Address is the host:port that clients dial. Port 0 means a free port; no host means loopback. "" means a free
	// port on loopback.
	Address string
	// UIAddress is the host:port of the Web UI, in the same form as Address. "" means no Web UI.
	UIAddress string
	// UIFallback lets the Web UI use a free port if the port of UIAddress is taken.
	UIFallback bool
	// UIHosts lists the host names under which the Web UI answers besides localhost, the machine's own names and IP
	// addresses.
	UIHosts []string
	// Logger receives the server's errors at info level and its warnings at debug level. It may be nil.
	Logger *slog.Logger
	// Namespace is created on the first start. "" means "default".
	Namespace string
	// Retention is how long closed workflows are kept, at least an hour. 0 means 30 days.
	Retention time.Duration
	// SearchAttributes are registered in the namespace, by name. SQLite supports at most 10 of type Keyword and 3 of
	// each other type.
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

// validate returns every problem at once, by field name.
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

// databasePath returns the canonical absolute name of the database file, so that different spellings share one lock.
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
