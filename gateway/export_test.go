package gateway

import (
	"bytes"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"filippo.io/age"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/proto"

	library "switchyard/activities/environments"
	"switchyard/activities/store/storekey"
	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const exportedKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEiWvIYvCJDxLpQ4TtdfmPCHTAUtPOuYbyvVXMA8FEAz ann@laptop"

// keepArchive stores an environment with the given archive.
func keepArchive(t *testing.T, l *library.Library, name, content string) {
	t.Helper()
	archive := library.NewArchive()
	if err := l.Reserve(t.Context(), archive, "node", name); err != nil {
		t.Fatal(err)
	}
	w := l.NewWriter(t.Context(), archive)
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Keep(t.Context(), &v1.Environment{
		Name: name, Kind: v1.EnvironmentImage, Size: w.Size(), Digest: w.Digest(), Archive: w.Archive(), Parts: int32(w.Parts()),
	}); err != nil {
		t.Fatal(err)
	}
}

// exportFixture is a gateway that requires tokens, with the clients of an admin.
type exportFixture struct {
	*fixture
	admin     string // token
	export    switchyardv1connect.ExportServiceClient
	secrets   switchyardv1connect.SecretServiceClient
	schedules switchyardv1connect.ScheduleServiceClient
	tokens    switchyardv1connect.AuthServiceClient
}

func startExport(t *testing.T) *exportFixture {
	t.Helper()
	f := startLocked(t, filepath.Join(t.TempDir(), "store"))
	admin, _ := f.token(t, "root", v1.RoleAdmin)
	return &exportFixture{
		fixture: f, admin: admin, export: dialService(t, f, switchyardv1connect.NewExportServiceClient, admin),
		secrets:   dialService(t, f, switchyardv1connect.NewSecretServiceClient, admin),
		schedules: dialService(t, f, switchyardv1connect.NewScheduleServiceClient, admin),
		tokens:    dialService(t, f, switchyardv1connect.NewAuthServiceClient, admin),
	}
}

// openSealed returns a secret with its value in place of the sealed one.
func openSealed(t *testing.T, identity age.Identity, item *v1.ExportedItem) *v1.ExportedItem {
	t.Helper()
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(item.GetSecret().GetSealed())), identity)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	whole := &v1.ExportedItem{}
	if err := proto.Unmarshal(text, whole); err != nil {
		t.Fatal(err)
	}
	if whole.GetName() != item.GetName() || whole.GetSecret().GetRole() != item.GetSecret().GetRole() {
		t.Errorf("%v is sealed in %v", whole, item)
	}
	return whole
}

// TestExportedItemsWorkInAnotherFleet exports from a gateway, and imports into one with another store and another key. Both use one
// Temporal, so the definition is deleted in between.
func TestExportedItemsWorkInAnotherFleet(t *testing.T) {
	t.Parallel()
	const name, archive = "exported", "the content of the archive"
	from, to := startExport(t), startExport(t)
	ann, annToken := from.token(t, "ann", v1.RoleUser)
	_, bob := from.token(t, "bob", v1.RoleUser)
	do(t, from.tokens.RevokeToken, &v1.RevokeTokenRequest{Id: bob.GetId()})
	if _, err := from.config.Tokens.CreateFirst(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, dialService(t, from.fixture, switchyardv1connect.NewKeyServiceClient, ann).AddKey, &v1.AddKeyRequest{PublicKey: exportedKey})
	do(t, from.secrets.SetSecret, &v1.SetSecretRequest{Name: name, Value: []byte("hunter2"), Role: v1.RoleUser})
	keepArchive(t, library.New(from.config.Store), name, archive)
	workflows := dialService(t, from.fixture, switchyardv1connect.NewWorkflowServiceClient, from.admin)
	text := strings.Replace(document(name, "a"), "tasks:", "schedule: { cron: '@yearly' }\ntasks:", 1)
	do(t, workflows.PutWorkflow, &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: text}, Owner: "yard"})
	do(t, from.schedules.PauseSchedule, &v1.PauseScheduleRequest{Name: name, Reason: "fire"})

	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]*v1.ExportedItem{}
	eventually(t, "the lists have the definition", func() bool {
		for _, page := range servicetest.Pages(t, t.Context(), from.export.ExportItems, &v1.ExportItemsRequest{Recipient: identity.Recipient().String(), PageSize: 2}) {
			for _, item := range page.GetItems() {
				if item.GetWorkflow() == nil || item.GetName() == name { // other tests store definitions in the same namespace
					exported[item.GetKind()+" "+item.GetName()] = item
				}
			}
		}
		return exported["workflow "+name] != nil
	})
	annName := "ann/" + annToken.GetId()
	var root string
	for id := range exported {
		if strings.HasPrefix(id, "token root/") {
			root = id
		}
	}
	want := []string{"environment " + name, "key ann/SHA256:", "secret " + name, "token " + annName, root, "workflow " + name}
	got := slices.Sorted(maps.Keys(exported))
	for i, id := range got {
		if len(got) != len(want) || !strings.HasPrefix(id, want[i]) {
			t.Fatalf("exported %q, want %q", got, want)
		}
	}
	secret := exported["secret "+name]
	if bytes.Contains([]byte(secret.String()), []byte("hunter2")) || secret.GetSecret().GetValue() != nil {
		t.Errorf("the secret leaves the gateway as %v", secret)
	}
	exported["secret "+name] = openSealed(t, identity, secret)
	do(t, workflows.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: name})

	plan := func(id, action string, warnings int) *v1.PlanImportResponse {
		t.Helper()
		res := do(t, to.export.PlanImport, &v1.PlanImportRequest{Item: exported[id]})
		if res.GetAction() != action || len(res.GetWarnings()) != warnings || (res.GetStored() == nil) != (action == v1.ImportCreate) {
			t.Errorf("%s: %v, want %s with %d warnings", id, res, action, warnings)
		}
		return res
	}
	put := func(id, action string, overwrite bool) {
		t.Helper()
		if res := do(t, to.export.ImportItem, &v1.ImportItemRequest{Item: exported[id], Overwrite: overwrite}); res.GetAction() != action {
			t.Errorf("%s: %v, want %s", id, res, action)
		}
	}
	conflict := func(id string) {
		t.Helper()
		plan(id, v1.ImportChange, 0)
		refused(t, id, to.export.ImportItem, &v1.ImportItemRequest{Item: exported[id]}, connect.CodeAlreadyExists, id+" exists and is different")
		plan(id, v1.ImportChange, 0)
		put(id, v1.ImportChange, true)
		plan(id, v1.ImportKeep, 0)
	}
	for _, id := range got {
		missing := 0
		if strings.HasPrefix(id, "environment ") {
			missing = 1
		}
		plan(id, v1.ImportCreate, missing)
		plan(id, v1.ImportCreate, missing) // a plan stores nothing
		put(id, v1.ImportCreate, false)
		plan(id, v1.ImportKeep, missing)
		put(id, v1.ImportKeep, false)
	}

	// Everything works.
	if who := do(t, dialService(t, to.fixture, switchyardv1connect.NewAuthServiceClient, ann).WhoAmI, &v1.WhoAmIRequest{}); who.GetName() != "ann" || who.GetRole() != v1.RoleUser {
		t.Errorf("the token belongs to %v", who)
	}
	if keys := do(t, dialService(t, to.fixture, switchyardv1connect.NewKeyServiceClient, ann).ListKeys, &v1.ListKeysRequest{}).GetItems(); len(keys) != 1 || keys[0].GetRole() != v1.RoleUser || keys[0].GetComment() != "ann@laptop" {
		t.Errorf("the keys are %v", keys)
	}
	if value, s, err := to.config.Vault.Open(t.Context(), name); err != nil || string(value) != "hunter2" || s.GetRole() != v1.RoleUser || s.GetSetBy() != "root" {
		t.Errorf("the secret is %q, %v, %v", value, s, err)
	}
	if s := do(t, to.schedules.GetSchedule, &v1.GetScheduleRequest{Name: name}).GetSchedule(); !s.GetPaused() || s.GetNote() != "paused by root: fire" {
		t.Errorf("the schedule is %v", s)
	}
	stored := do(t, dialService(t, to.fixture, switchyardv1connect.NewWorkflowServiceClient, to.admin).GetWorkflow, &v1.GetWorkflowRequest{Name: name})
	if stored.GetOwner() != "yard" || !proto.Equal(stored.GetDefinition(), exported["workflow "+name].GetWorkflow().GetDefinition()) {
		t.Errorf("the definition is %v", stored)
	}
	e := exported["environment "+name].GetEnvironment()
	for n := range int(e.GetParts()) { // as a person copies the folder
		part, err := from.config.Store.Get(t.Context(), storekey.EnvironmentPart(e.GetArchive(), n))
		if err == nil {
			err = to.config.Store.Put(t.Context(), storekey.EnvironmentPart(e.GetArchive(), n), part)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plan("environment "+name, v1.ImportKeep, 0)
	r, err := library.New(to.config.Store).Open(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(r); string(content) != archive || err != nil {
		t.Errorf("the archive is %q, %v", content, err)
	}
	_ = r.Close()

	// What is different is kept unless it is overwritten; a revoked token is never valid again.
	do(t, to.secrets.SetSecret, &v1.SetSecretRequest{Name: name, Value: []byte("another"), Role: v1.RoleUser})
	if res := plan("secret "+name, v1.ImportChange, 0); res.GetStored().GetSecret().GetValue() != nil {
		t.Errorf("a plan shows %v", res)
	}
	conflict("secret " + name)
	do(t, to.schedules.ResumeSchedule, &v1.ResumeScheduleRequest{Name: name})
	conflict("workflow " + name)
	if s := do(t, to.schedules.GetSchedule, &v1.GetScheduleRequest{Name: name}).GetSchedule(); !s.GetPaused() {
		t.Errorf("overwritten, the schedule is %v", s)
	}
	keepAnother := proto.CloneOf(e)
	keepAnother.Archive, keepAnother.Digest = strings.Repeat("0", 32)+"/"+strings.Repeat("0", 16), "00"
	if err := library.New(to.config.Store).Restore(t.Context(), keepAnother); err != nil {
		t.Fatal(err)
	}
	plan("environment "+name, v1.ImportChange, 1) // the archive was deleted with the name
	put("environment "+name, v1.ImportChange, true)
	do(t, to.tokens.RevokeToken, &v1.RevokeTokenRequest{Id: annToken.GetId()})
	plan("token "+annName, v1.ImportKeep, 1)
	put("token "+annName, v1.ImportKeep, true)
	asAnn := dialService(t, to.fixture, switchyardv1connect.NewAuthServiceClient, ann)
	eventually(t, "a revoked token that is imported is refused", func() bool {
		_, err := asAnn.WhoAmI(t.Context(), connect.NewRequest(&v1.WhoAmIRequest{}))
		return connect.CodeOf(err) == connect.CodeUnauthenticated
	})

	// The audit says what was imported, and for whom the secrets were sealed.
	imports := to.auditEntries(t, to.admin, &v1.ListAuditEntriesRequest{})
	if !slices.ContainsFunc(imports, func(e *v1.AuditEntry) bool {
		return e.GetBy() == "root" && e.GetAction() == "ExportService/ImportItem" && maps.Equal(e.GetObjects(), map[string]string{"kind": "token", "name": annName})
	}) {
		t.Errorf("the audit has %v", imports)
	}
	exports := from.auditEntries(t, from.admin, &v1.ListAuditEntriesRequest{})
	if !slices.ContainsFunc(exports, func(e *v1.AuditEntry) bool {
		return e.GetAction() == "ExportService/ExportItems" && e.GetObjects()["recipient"] == identity.Recipient().String()
	}) {
		t.Errorf("the audit has %v", exports)
	}
}

func TestImportRefusesWhatNoCallCouldHaveStored(t *testing.T) {
	t.Parallel()
	locked, open := startExport(t), start(t)
	token := func(change func(*v1.TokenRecord)) *v1.ExportedItem {
		record := &v1.TokenRecord{Token: &v1.Token{Id: "abc", Name: "ann", Role: v1.RoleUser}, SecretSha256: make([]byte, 32)}
		change(record)
		return &v1.ExportedItem{Kind: v1.ExportToken, Name: "ann/" + record.GetToken().GetId(), Content: &v1.ExportedItem_Token{Token: record}}
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(exportedKey))
	if err != nil {
		t.Fatal(err)
	}
	key := func(change func(*v1.Key)) *v1.ExportedItem {
		k := &v1.Key{Name: "ann", Role: v1.RoleUser, Type: public.Type(), PublicKey: exportedKey, Fingerprint: ssh.FingerprintSHA256(public)}
		change(k)
		return &v1.ExportedItem{Kind: v1.ExportKey, Name: k.GetName() + "/" + k.GetFingerprint(), Content: &v1.ExportedItem_Key{Key: k}}
	}
	secret := &v1.ExportedItem{Kind: v1.ExportSecret, Name: "db", Content: &v1.ExportedItem_Secret{Secret: &v1.ExportedSecret{Role: v1.RoleUser}}}
	renamed := token(func(*v1.TokenRecord) {})
	renamed.Name = "bob/abc"
	other := token(func(*v1.TokenRecord) {})
	other.Kind = v1.ExportKey
	export := dialService(t, open, switchyardv1connect.NewExportServiceClient, "")
	for what, test := range map[string]struct {
		client switchyardv1connect.ExportServiceClient
		item   *v1.ExportedItem
		code   connect.Code
		says   string
	}{
		"another name":            {locked.export, renamed, connect.CodeInvalidArgument, `named "bob/abc", and its content "ann/abc"`},
		"another kind":            {locked.export, other, connect.CodeInvalidArgument, "knows the kinds environment, key, secret, token, workflow"},
		"the first token":         {locked.export, token(func(r *v1.TokenRecord) { r.Token.Id = "first" }), connect.CodeInvalidArgument, "each deployment has its own"},
		"a path as a token":       {locked.export, token(func(r *v1.TokenRecord) { r.Token.Id = "../x" }), connect.CodeInvalidArgument, "is not the id of a token"},
		"no digest":               {locked.export, token(func(r *v1.TokenRecord) { r.SecretSha256 = nil }), connect.CodeInvalidArgument, "no SHA-256"},
		"an unknown role":         {locked.export, token(func(r *v1.TokenRecord) { r.Token.Role = "god" }), connect.CodeInvalidArgument, "role"},
		"a node without a name":   {locked.export, token(func(r *v1.TokenRecord) { r.Token.Role = v1.RoleNode }), connect.CodeInvalidArgument, "needs a node"},
		"another fingerprint":     {locked.export, key(func(k *v1.Key) { k.Fingerprint = "SHA256:" + strings.Repeat("A", 43) }), connect.CodeInvalidArgument, "is not the one in its publicKey"},
		"a key of a node":         {locked.export, key(func(k *v1.Key) { k.Role = v1.RoleNode }), connect.CodeInvalidArgument, "it must be user, operator or admin"},
		"a key without log-in":    {export, key(func(*v1.Key) {}), connect.CodeAborted, "this gateway verifies no name"},
		"a private key":           {locked.export, key(func(k *v1.Key) { k.PublicKey = "x" }), connect.CodeInvalidArgument, "the text"},
		"a secret without value":  {locked.export, secret, connect.CodeInvalidArgument, "the value of db has 0 bytes"},
		"no archive":              {locked.export, environmentItem("", v1.EnvironmentImage), connect.CodeInvalidArgument, "needs a name, a kind, a digest and an archive"},
		"an unknown environment":  {locked.export, environmentItem("a/b", "tape"), connect.CodeInvalidArgument, "it must be image or disk"},
		"a bad definition":        {locked.export, &v1.ExportedItem{Kind: v1.ExportWorkflow, Name: "a", Content: &v1.ExportedItem_Workflow{Workflow: &v1.ExportedWorkflow{Definition: &v1.Definition{Name: "a"}}}}, connect.CodeInvalidArgument, "task"},
		"a token without log-in":  {export, token(func(*v1.TokenRecord) {}), connect.CodeAborted, "--auth tokens"},
		"a secret without a file": {export, secret, connect.CodeAborted, "--secrets-key"},
	} {
		refused(t, what, test.client.PlanImport, &v1.PlanImportRequest{Item: test.item}, test.code, test.says)
		refused(t, what, test.client.ImportItem, &v1.ImportItemRequest{Item: test.item, Overwrite: true}, test.code, test.says)
	}
	refused(t, "a recipient of something else", locked.export.ExportItems, &v1.ExportItemsRequest{Recipient: "ssh-ed25519 x"}, connect.CodeInvalidArgument, "age1")
}

func environmentItem(archive, kind string) *v1.ExportedItem {
	return &v1.ExportedItem{Kind: v1.ExportEnvironment, Name: "desk", Content: &v1.ExportedItem_Environment{Environment: &v1.Environment{Name: "desk", Kind: kind, Digest: "00", Archive: archive}}}
}
