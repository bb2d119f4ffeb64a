package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/statedir"
	"switchyard/activities/store"
	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/stack"
	"switchyard/workers"
)

const (
	storeUsage       = "folder or URL (s3://, gs://) of logs and results, the same for all gateways of a deployment (default one for each Temporal namespace in your data directory)"
	workerStoreUsage = "folder or URL (s3://, gs://) of logs and results, the same as the gateway's (default the gateway itself)"
	spoolUsage       = "folder on this node for output and results while the store is unreachable (default one in /var/lib/switchyard, or in your state directory)"
)

// gatewayStore returns the location of a gateway's store: the named one, or the one in the user's data directory that
// belongs to the cluster which Temporal's own settings name.
func gatewayStore(ctx context.Context, named string, getenv func(string) string, log *slog.Logger) (string, error) {
	if named != "" {
		return named, nil
	}
	data, err := dataFolder(getenv)
	if err != nil {
		return "", err
	}
	conn, err := workers.Dial(ctx, workers.DialOptions{Logger: log})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return fleetStore(data, conn.Fleet), nil
}

// fleetStore returns the store of a cluster in the data directory.
func fleetStore(data, fleet string) string { return filepath.Join(data, "stores", fleet) }

// dataFolder returns the folder of this program in the user's data directory.
func dataFolder(getenv func(string) string) (string, error) {
	// The XDG specification says to ignore a relative path.
	if data := getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "switchyard"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("there is no data directory for the store: %w", err), Hint: "name a folder with --store"}
	}
	return filepath.Join(home, ".local", "share", "switchyard"), nil
}

// besideStore returns where a gateway keeps a deployment file that must not be in the store: beside the folder of the
// store, or in the data directory. It is "" for a private store, next to which the stack has its own place.
func besideStore(store, suffix string, getenv func(string) string) (string, error) {
	switch {
	case store == "":
		return "", nil
	case !strings.Contains(store, "://"):
		return filepath.Clean(store) + suffix, nil
	}
	data, err := dataFolder(getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(data, storeFolder(store)+suffix), nil
}

// secretsKeyFlag adds --secrets-key to a command that serves the API. secretsKeyOr reads the flag.
func secretsKeyFlag(f *pflag.FlagSet) *string {
	return f.String("secrets-key", "", "file with the encryption key of secrets, the same for all gateways of a deployment; created with the first secret (default beside the store)")
}

// secretsKeyOr returns the key file of the secrets: the named one, or the one beside the store.
func secretsKeyOr(named, store string, getenv func(string) string) (string, error) {
	if named != "" {
		return named, nil
	}
	return besideStore(store, ".secrets-key", getenv)
}

// workerStore returns the location of a worker's store: the named one, or the gateways of its fleet.
func workerStore(named, gateways string) string {
	if list, err := gatewayclient.Parse(cmp.Or(gateways, client.DefaultURL)); named == "" && err == nil {
		return list.String()
	}
	return cmp.Or(named, gateways)
}

// spoolOr returns the folder where a node keeps values while its store is unreachable: the named one, or one that
// belongs to this node and store alone, so that a restarted node finds it again. Of several gateways, it is the first one
// that has a folder, so that gateways can be added to a list and change their order.
func spoolOr(named, location, node string) (string, error) {
	if named != "" {
		return named, nil
	}
	state, err := statedir.Dir()
	if err != nil {
		return "", err
	}
	stores := []string{location}
	if store.IsGateway(location) {
		stores = strings.Split(location, ",")
	}
	folders := make([]string, len(stores))
	for i, s := range stores {
		folders[i] = filepath.Join(state, "spool", node, "at-"+storeFolder(s))
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder, nil
		}
	}
	return folders[0], nil
}

// maxStoreFolder bounds the readable part of a store's folder name, in bytes.
const maxStoreFolder = 60

// storeFolder returns a unique file name for a store: the readable part of its location, and a hash.
func storeFolder(store string) string {
	_, readable, isURL := strings.Cut(strings.TrimSuffix(store, "/"), "://")
	if !isURL {
		readable = store
		if absolute, err := filepath.Abs(store); err == nil {
			store, readable = absolute, filepath.Base(absolute)
		}
	}
	readable = strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789.-", r) {
			return r
		}
		return '_'
	}, strings.ToLower(readable))
	sum := sha256.Sum256([]byte(strings.TrimSuffix(store, "/")))
	return fmt.Sprintf("%s-%x", readable[:min(len(readable), maxStoreFolder)], sum[:4])
}

// retentionFlag adds --retention to a command that carries runs. checkRetention reads the flag.
func retentionFlag(f *pflag.FlagSet) *time.Duration {
	return f.Duration("retention", workers.DefaultRetention, "how long to keep logs and results after the end of their run")
}

func checkRetention(retention time.Duration) (time.Duration, error) {
	if retention <= 0 {
		return 0, exit.Usagef("--retention %s: it must be above 0, such as 720h", retention)
	}
	return retention, nil
}

// quotaFlags are the quotas of a run, for commands that may write to the store themselves.
type quotaFlags struct{ logs, artifacts int64 }

func (q *quotaFlags) add(f *pflag.FlagSet) {
	f.Int64Var(&q.logs, "log-quota-gb", 10, "maximum size of the logs of one run in the store, in GiB; 0 means no limit")
	f.Int64Var(&q.artifacts, "artifact-quota-gb", 100, "maximum size of the artifacts of one run, in GiB; 0 means no limit")
}

// into sets the quotas, in bytes.
func (q *quotaFlags) into(cfg *stack.Config) (err error) {
	if cfg.LogQuota, err = checkQuota("log-quota-gb", q.logs); err == nil {
		cfg.ArtifactQuota, err = checkQuota("artifact-quota-gb", q.artifacts)
	}
	return err
}

// checkQuota returns the quota of a flag in bytes.
func checkQuota(flag string, gb int64) (int64, error) {
	if gb < 0 || gb > math.MaxInt64>>30 {
		return 0, exit.Usagef("--%s %d: it must be at least 1, or 0 for no limit", flag, gb)
	}
	return gb << 30, nil
}
