package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	temporalsql "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/filelock"
)

// database is the server's store: how to connect to it, and what must happen after the server has stopped.
type database struct {
	store *config.SQL
	// created reports that the database did not exist before.
	created bool
	lock    *filelock.Lock // nil for a database in memory
}

// openDatabase locks, creates and checks the file that the options name, or sets up a database in memory.
func openDatabase(ctx context.Context, opts Options) (*database, error) {
	if opts.DBFile == "" {
		return memoryDatabase(), nil
	}
	path, err := opts.databasePath()
	if err != nil {
		return nil, err
	}
	lock, err := lockDatabase(path)
	if err != nil {
		return nil, err
	}
	created, err := prepareDatabase(ctx, path, releases, opts.Logger)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return &database{store: fileStore(path), created: created, lock: lock}, nil
}

// prepareDatabase creates a database, or upgrades it to the last of the releases. The caller holds the lock.
func prepareDatabase(ctx context.Context, path string, known []release, log *slog.Logger) (created bool, err error) {
	have, err := readMark(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, createDatabase(ctx, path)
	}
	if err != nil {
		return false, err
	}
	isNeeded, err := planUpgrade(have, known)
	to := known[len(known)-1]
	if err != nil {
		err = fmt.Errorf("database %s %w", path, err)
		if _, statErr := os.Stat(copyOf(path, to.mark)); have.minor > to.minor && statErr == nil {
			err = fmt.Errorf("%w; %s is the database before it was upgraded", err, copyOf(path, to.mark))
		}
		return false, err
	}
	if !isNeeded {
		return false, nil
	}
	kept, err := upgradeDatabase(ctx, path, have, to)
	if err != nil {
		return false, fmt.Errorf("upgrade database %s to Temporal %s: %w", path, to, err)
	}
	log.Info("the database has been upgraded to another version of Temporal", "database", path, "from", have.String(), "to", to.String(), "copy", kept)
	return false, nil
}

// memoryDatabase returns a database that is private to one server: its unique name is part of the connection's name.
func memoryDatabase() *database {
	return &database{created: true, store: &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: uuid.NewString(),
		ConnectAttributes: map[string]string{
			"mode":  "memory",
			"cache": "private",
		},
	}}
}

// fileStore uses a single connection (the plugin's default): SQLite allows one writer, and concurrent readers would
// only delay it.
func fileStore(path string) *config.SQL {
	return &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: escapePath(path),
		ConnectAttributes: map[string]string{
			// Only createDatabase creates files. A file that vanishes is an error, not an empty database.
			"mode":         "rw",
			"journal_mode": "wal",
			// A crash of the process loses nothing. A crash of the machine loses the last moments, but never
			// consistency.
			"synchronous": "normal",
			// A negative value is the size of the page cache in KiB.
			"cache_size": "-16384",
			"temp_store": "memory",
			// The plugin keeps one connection for each distinct set of attributes until the process ends. A file that
			// was removed and recreated under the same name must not get the old connection. SQLite ignores unknown
			// pragmas.
			"switchyard_start": "s" + strings.ReplaceAll(uuid.NewString(), "-", ""),
		},
	}
}

// createNamespace creates the namespace with its retention and search attributes, unless it exists.
func (d *database) createNamespace(opts Options) error {
	namespace, err := sqlite.NewNamespaceConfig(clusterName, opts.Namespace, false, opts.SearchAttributes)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", opts.Namespace, err)
	}
	namespace.Detail.Config.Retention = durationpb.New(opts.Retention)
	if err := sqlite.CreateNamespaces(d.store, namespace); err != nil {
		return fmt.Errorf("namespace %s: %w", opts.Namespace, err)
	}
	return nil
}

// close checkpoints the file so that it is complete without its log, or frees the memory. Afterwards other processes
// may use the file. The plugin's connection stays open until the process ends.
func (d *database) close() error {
	var errs []error
	admin, err := temporalsql.NewSQLAdminDB(sqlplugin.DbKindUnknown, d.store, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("close database: %w", err))
	case d.lock != nil:
		errs = append(errs, admin.Exec("PRAGMA wal_checkpoint(TRUNCATE)"), admin.Close())
	default:
		errs = append(errs, dropTables(admin), admin.Exec("VACUUM"), admin.Exec("PRAGMA shrink_memory"), admin.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Release())
	}
	return errors.Join(errs...)
}

// dropTables drops the remaining tables one by one, because dropping a search index also drops its auxiliary tables.
func dropTables(admin sqlplugin.AdminDB) error {
	for {
		tables, err := admin.ListTables("")
		if err != nil {
			return err
		}
		tables = slices.DeleteFunc(tables, func(name string) bool { return strings.HasPrefix(name, "sqlite_") })
		if len(tables) == 0 {
			return nil
		}
		if err := admin.DropTable(tables[0]); err != nil {
			return err
		}
	}
}
