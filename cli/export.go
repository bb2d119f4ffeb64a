package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/exportfile"
	v1 "switchyard/proto/switchyard/v1"
)

func newExport(sys *system) *cobra.Command {
	var path string
	var skip []string
	cmd := &cobra.Command{
		Use:   "export [-o FILE]",
		Short: "Write what people have set up in the fleet to a file",
		Long: `Writes what people have set up in the fleet to a file that "switchyard import" reads: stored
definitions with their owners and the state of their schedules, secrets, digests of tokens,
SSH keys, and the names of environments. Runs, logs and the audit are not part of it.

Secrets are sealed with a pass phrase. It is read from --passphrase-file, from
SWITCHYARD_PASSPHRASE, or from the terminal, which does not show it; the gateway never
receives it. Only an admin can export.`,
		Args: arguments(0, 0, ""),
	}
	cmd.Flags().StringVarP(&path, "file", "o", "", "file to write, which only you can read (default, and \"-\": standard output)")
	skipFlag(cmd, &skip)
	passphraseFlag(cmd)
	clientFlag(cmd)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		if path == "-" {
			path = ""
		}
		if path == "" && sys.stdoutPlain {
			return exit.Usagef("an export is not written to a terminal; name a file with -o")
		}
		if err := checkKinds(skip, exportKinds()); err != nil {
			return err
		}
		passphrase, err := sys.givenPassphrase(cmd)
		if err != nil {
			return err
		}
		key, err := exportfile.NewKey()
		if err != nil {
			return err
		}
		f := exportfile.File{CreatedAt: sys.now()}
		var warnings []string
		if f.Items, warnings, err = exportItems(ctx, a, key, skip); err != nil {
			return err
		}
		if slices.ContainsFunc(f.Items, func(item *v1.ExportedItem) bool { return item.GetSecret() != nil }) {
			if passphrase == "" {
				if passphrase, err = sys.askPassphrase(ctx, true); err != nil {
					return err
				}
			}
			if len(passphrase) < minPassphrase {
				return exit.Usagef("the pass phrase has %d bytes; take at least %d, because whoever has the file can try as many as they like", len(passphrase), minPassphrase)
			}
			if f.Key, err = key.Seal(passphrase); err != nil {
				return err
			}
		}
		var text bytes.Buffer
		if err := exportfile.Write(&text, f); err != nil {
			return err
		}
		if path == "" {
			_, err = sys.stdout.Write(text.Bytes())
		} else {
			err = writePrivate(path, text.Bytes())
		}
		if err != nil {
			return err
		}
		for _, warning := range warnings {
			fmt.Fprintln(sys.screen, warning)
		}
		fmt.Fprintf(sys.screen, "exported %d items to %s\n", len(f.Items), cmp.Or(path, "standard output"))
		if len(warnings) > 0 {
			return exit.Silent(exit.CodeNotDone)
		}
		return nil
	})
	return cmd
}

// minPassphrase is the length in bytes of the shortest pass phrase that seals secrets.
const minPassphrase = 12

func skipFlag(cmd *cobra.Command, skip *[]string) {
	cmd.Flags().StringSliceVar(skip, "skip", nil, "kind of items to leave out, such as token; may be repeated")
}

// exportKinds returns the kinds of items that this program knows.
func exportKinds() (kinds []string) {
	fields := v1.ExportKinds()
	for i := range fields.Len() {
		kinds = append(kinds, string(fields.Get(i).Name()))
	}
	return kinds
}

// checkKinds returns an error for a kind to leave out that is not one of the known ones.
func checkKinds(skip, known []string) error {
	for _, kind := range skip {
		if !slices.Contains(known, kind) {
			return exit.Usagef("--skip %s: there is no such kind; the kinds are %s", kind, strings.Join(known, ", "))
		}
	}
	return nil
}

// exportItems reads all items of a gateway, with secrets sealed for a key.
func exportItems(ctx context.Context, a *client.Client, key exportfile.Key, skip []string) (items []*v1.ExportedItem, warnings []string, err error) {
	req := &v1.ExportItemsRequest{Recipient: key.Recipient()}
	if slices.Contains(skip, v1.ExportSecret) {
		req.Recipient = ""
	}
	for {
		page, err := client.Call(ctx, a, a.Export.ExportItems, req)
		if err != nil {
			return nil, nil, err
		}
		for _, item := range page.GetItems() {
			if !slices.Contains(skip, item.GetKind()) {
				items = append(items, item)
			}
		}
		warnings = append(warnings, page.GetWarnings()...)
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return items, warnings, nil
		}
	}
}

// writePrivate atomically replaces a file with one that only its owner can read.
func writePrivate(path string, text []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return exit.Usagef("%s is not a file; name one to write", path)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // created with mode 0600
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return exit.Usagef("write %s: %w", path, err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = fresh.Write(text)
	if err = errors.Join(err, fresh.Sync(), fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(fresh.Name())))
	}
	return nil
}
