package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"switchyard/cli/exit"
	"switchyard/cli/exportfile"
	v1 "switchyard/proto/switchyard/v1"
)

// exportedToken returns the item of a token with an id.
func exportedToken(id string) *v1.ExportedItem {
	return &v1.ExportedItem{Kind: v1.ExportToken, Name: "ann/" + id, Content: &v1.ExportedItem_Token{Token: &v1.TokenRecord{Token: &v1.Token{Id: id, Name: "ann"}}}}
}

func exportedSecret(sealed string) *v1.ExportedItem {
	return &v1.ExportedItem{Kind: v1.ExportSecret, Name: "db", Content: &v1.ExportedItem_Secret{Secret: &v1.ExportedSecret{Role: v1.RoleUser, Sealed: sealed}}}
}

func TestExportWritesAPrivateFile(t *testing.T) {
	t.Parallel()
	f := fake(t)
	dir := t.TempDir()
	path, passphrase := filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "passphrase")
	must(t, os.WriteFile(passphrase, []byte("correct horse\n"), 0o600))
	must(t, os.WriteFile(path, []byte("older"), 0o644))
	script(f, &v1.ExportItemsResponse{Items: []*v1.ExportedItem{exportedSecret("sealed")}, NextPageToken: "next"}, &v1.ExportItemsResponse{Items: []*v1.ExportedItem{exportedToken("1")}})
	run(t, "export", "-o", path, "--passphrase-file", passphrase, "--gateway", f.url).ends(t, exit.CodeDone, "exported 2 items to "+path)
	info, err := os.Stat(path)
	must(t, err)
	text, err := os.ReadFile(path)
	must(t, err)
	read, err := exportfile.Read(path, text, nil)
	if err != nil || len(read.Items) != 2 || info.Mode() != 0o600 {
		t.Errorf("%v, mode %v\n%s", err, info.Mode(), text)
	}
	key, err := exportfile.OpenKey(read.Key, "correct horse")
	must(t, err)
	asked := requests[*v1.ExportItemsRequest](f)
	if len(asked) != 2 || asked[0].GetRecipient() != key.Recipient() || asked[1].GetPageToken() != "next" {
		t.Errorf("it asks for %v, and the key is that of %s", asked, key.Recipient())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder has %v, %v", left, err)
	}

	// Nothing asks for a pass phrase if there is no secret.
	script(f, &v1.ExportItemsResponse{Items: []*v1.ExportedItem{exportedToken("1")}, Warnings: []string{"token 2 is left out"}})
	got := run(t, "export", "-o", "-", "--skip", "secret", "--gateway", f.url)
	if got.ends(t, exit.CodeNotDone, "token 2 is left out"); !strings.Contains(got.stdout, "name: ann/1") || strings.Contains(got.stdout, "key:") {
		t.Errorf("%+v", got)
	}
	if asked := requests[*v1.ExportItemsRequest](f); asked[2].GetRecipient() != "" {
		t.Errorf("it asks for secrets: %v", asked[2])
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	f := fake(t)
	dir := t.TempDir()
	public := filepath.Join(dir, "public")
	must(t, os.WriteFile(public, []byte("x"), 0o644))
	empty := filepath.Join(dir, "empty")
	must(t, os.WriteFile(empty, nil, 0o600))
	short := filepath.Join(dir, "short")
	must(t, os.WriteFile(short, []byte("eleven byte"), 0o600))
	script(f, &v1.ExportItemsResponse{Items: []*v1.ExportedItem{exportedSecret("sealed")}})
	for says, args := range map[string][]string{
		"a pass phrase for the secrets is missing":      {"-o", filepath.Join(dir, "fleet.yaml")},
		"other users can read " + public:                {"--passphrase-file", public},
		"contains no pass phrase":                       {"--passphrase-file", empty},
		"has 11 bytes; take at least 12":                {"--passphrase-file", short},
		"there is no such kind; the kinds are env":      {"--skip", "secrets"},
		"unexpected argument":                           {"fleet.yaml"},
		dir + " is not a file":                          {"-o", dir, "--skip", "secret"},
		filepath.Join("none", "fleet.yaml") + ": open ": {"-o", filepath.Join(dir, "none", "fleet.yaml"), "--skip", "secret"},
	} {
		run(t, append([]string{"export", "--gateway", f.url}, args...)...).ends(t, exit.CodeUsage, says)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// exportFile writes a file of export and returns its path.
func exportFile(t *testing.T, f exportfile.File) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	out, err := os.Create(path)
	must(t, err)
	must(t, exportfile.Write(out, f))
	must(t, out.Close())
	return path
}

// TestImportPlansBeforeItChanges imports a new token, the same one, and a different one.
func TestImportPlansBeforeItChanges(t *testing.T) {
	t.Parallel()
	f := fake(t)
	path := exportFile(t, exportfile.File{Items: []*v1.ExportedItem{exportedToken("1"), exportedToken("2"), exportedToken("3")}})
	plans := func() {
		stored := exportedToken("3")
		stored.GetToken().GetToken().Role = v1.RoleUser
		script(f, &v1.PlanImportResponse{Action: v1.ImportCreate, Warnings: []string{"token 1 needs something"}}, &v1.PlanImportResponse{Action: v1.ImportKeep},
			&v1.PlanImportResponse{Action: v1.ImportChange, Stored: stored}, &v1.PlanImportResponse{Warnings: []string{"token 1 still needs it"}})
	}
	args := []string{"import", path, "--gateway", f.url}
	plans()
	refused := run(t, args...)
	refused.ends(t, exit.CodeNotDone, "1 of 3 items are different in this fleet; nothing has been changed")
	want := "created    token ann/1\nunchanged  token ann/2\nconflict   token ann/3\n    --- stored ann/3\n    +++ " + path + "\n"
	if !strings.HasPrefix(refused.stdout, want) || !strings.Contains(refused.stdout, "    -  role: user\n") {
		t.Errorf("%+v", refused)
	}
	plans()
	run(t, append(args, "--overwrite", "--dry-run")...).ends(t, exit.CodeNotDone, "token 1 needs something")
	if stored := requests[*v1.ImportItemRequest](f); len(stored) > 0 {
		t.Errorf("stored %v", stored)
	}
	plans()
	script(f, &v1.ImportItemResponse{})
	done := run(t, append(args, "--overwrite", "-o", "json")...)
	done.ends(t, exit.CodeDone, "token 1 still needs it")
	if !strings.Contains(done.stdout, `"action": "changed"`) || strings.Contains(done.stderr, "needs something") {
		t.Errorf("%+v", done)
	}
	var names []string
	for _, stored := range requests[*v1.ImportItemRequest](f) {
		names = append(names, stored.GetItem().GetName())
		if !stored.GetOverwrite() {
			t.Errorf("%v does not overwrite", stored)
		}
	}
	if !slices.Equal(names, []string{"ann/1", "ann/3"}) {
		t.Errorf("stored %q", names)
	}
	script(f, &v1.PlanImportResponse{Action: v1.ImportKeep})
	run(t, append(args, "--dry-run")...).ends(t, exit.CodeDone, "")
	run(t, append(args, "--skip", "tokens")...).ends(t, exit.CodeUsage, "there is no such kind")
	must(t, os.Truncate(path, 200))
	run(t, args...).ends(t, exit.CodeUsage, "was cut short")
}

func TestImportOpensSecretsWithThePassphrase(t *testing.T) {
	t.Parallel()
	key, err := exportfile.NewKey()
	must(t, err)
	sealed, err := key.Seal("correct horse")
	must(t, err)
	if _, err := age.ParseX25519Recipient(key.Recipient()); err != nil {
		t.Error(err)
	}
	f := fake(t)
	path := exportFile(t, exportfile.File{Key: sealed, Items: []*v1.ExportedItem{exportedSecret("x"), exportedToken("1")}})
	args := []string{"import", path, "--gateway", f.url}
	runWith(t, map[string]string{passphraseVariable: "another"}, "", args...).ends(t, exit.CodeUsage, "the pass phrase is not the one")
	runWith(t, map[string]string{passphraseVariable: "correct horse"}, "", args...).ends(t, exit.CodeUsage, "open secret db")
	run(t, args...).ends(t, exit.CodeUsage, "a pass phrase for the secrets is missing")
	script(f, &v1.PlanImportResponse{Action: v1.ImportKeep})
	if got := run(t, append(args, "--skip", "secret")...); got.code != exit.CodeDone || got.stdout != "unchanged  token ann/1\n" {
		t.Errorf("%+v", got)
	}
}
