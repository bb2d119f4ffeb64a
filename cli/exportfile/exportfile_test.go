package exportfile

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

var created = time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)

// workflow returns the item of a definition.
func workflow(t *testing.T, text string) *v1.ExportedItem {
	t.Helper()
	def, err := definition.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &v1.ExportedItem{Kind: v1.ExportWorkflow, Name: def.GetName(), Content: &v1.ExportedItem_Workflow{Workflow: &v1.ExportedWorkflow{
		Definition: def, Owner: "apply", Schedule: &v1.ExportedSchedule{Paused: true, Note: "paused by ann: \"fire\"\n"},
	}}}
}

// items returns one item of each kind.
func items(t *testing.T) []*v1.ExportedItem {
	t.Helper()
	return []*v1.ExportedItem{
		{Kind: v1.ExportEnvironment, Name: "desk", Content: &v1.ExportedItem_Environment{Environment: &v1.Environment{Name: "desk", Kind: v1.EnvironmentImage, Size: 1 << 40, Digest: "00", Archive: "a/b", Parts: 3}}},
		{Kind: v1.ExportKey, Name: "ann/SHA256:x", Content: &v1.ExportedItem_Key{Key: &v1.Key{Name: "ann", Fingerprint: "SHA256:x", CreatedAt: timestamppb.New(created)}}},
		{Kind: v1.ExportSecret, Name: "db", Content: &v1.ExportedItem_Secret{Secret: &v1.ExportedSecret{Role: v1.RoleUser, Sealed: "-----BEGIN\nx\n-----END\n"}}},
		{Kind: v1.ExportToken, Name: "yes/1", Content: &v1.ExportedItem_Token{Token: &v1.TokenRecord{Token: &v1.Token{Id: "1", Name: "yes"}, SecretSha256: []byte{0, 255}}}},
		workflow(t, "name: nightly\nschedule: { cron: '@daily' }\ntasks:\n  a: { type: shell, spec: { command: \"echo 1\\necho 'on: no'\" } }\n"),
	}
}

func written(t *testing.T, f File) string {
	t.Helper()
	var text bytes.Buffer
	if err := Write(&text, f); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestFileIsReadAsItWasWritten(t *testing.T) {
	f := File{CreatedAt: created, Key: "-----BEGIN\nx\n-----END\n", Items: items(t)}
	if len(f.Items) != v1.ExportKinds().Len() {
		t.Fatalf("%d kinds of %d are tested", len(f.Items), v1.ExportKinds().Len())
	}
	text := written(t, f)
	got, err := Read("f", []byte(text), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got.Key != f.Key || !got.CreatedAt.Equal(f.CreatedAt) || len(got.Items) != len(f.Items) {
		t.Errorf("%+v", got)
	}
	for i, item := range got.Items {
		if !proto.Equal(item, f.Items[i]) {
			t.Errorf("%v is read as %v", f.Items[i], item)
		}
	}
	if again := written(t, f); again != text {
		t.Errorf("the same items are written as\n%s\nand as\n%s", text, again)
	}
	for _, want := range []string{
		"version: 1\ncreatedAt: \"2026-11-29T09:00:00Z\"\nkey: |\n", "  - kind: token\n    name: yes/1\n    spec:\n      token:\n        id: \"1\"\n",
		"      definition:\n        name: nightly\n", "            command: |-\n", "\ncomplete: true\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
}

// TestAnyTextIsReadAsItWasWritten writes comments that look like something else in YAML.
func TestAnyTextIsReadAsItWasWritten(t *testing.T) {
	item := items(t)[1]
	rapid.Check(t, func(rt *rapid.T) {
		item.GetKey().Comment = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"null", "2026-11-29", "1e3", " x\n\n", "\ttab", "#", "- a: b"})).Draw(rt, "comment")
		var text bytes.Buffer
		if err := Write(&text, File{CreatedAt: created, Items: []*v1.ExportedItem{item}}); err != nil {
			rt.Fatal(err)
		}
		if got, err := Read("f", text.Bytes(), nil); err != nil || !proto.Equal(got.Items[0], item) {
			rt.Errorf("%v, %v\n%s", got, err, text.String())
		}
	})
}

func TestFaultyFilesAreRefused(t *testing.T) {
	text := written(t, File{CreatedAt: created, Items: items(t)})
	cuts := 0
	for at, c := range text { // at the end of each line but the last
		if c != '\n' || at == len(text)-1 {
			continue
		}
		if half, err := Read("f", []byte(text[:at]), nil); err == nil {
			t.Errorf("cut after %d bytes, it is read as %v", at, half)
		}
		cuts++
	}
	if cuts < 30 {
		t.Errorf("it was cut %d times", cuts)
	}
	for name, test := range map[string]struct {
		text string
		skip []string
		says string // "" if the file is good
	}{
		"cut":                       {text[:len(text)/2], nil, "was cut short"},
		"cut after the last item":   {strings.TrimSuffix(text, "complete: true\n"), nil, "was cut short"},
		"a newer version":           {strings.Replace(text, "version: 1", "version: 2", 1), nil, "has version 2, and this program reads version 1"},
		"a definition":              {"name: a\ntasks: {}\n", nil, "is not a file of `switchyard export`"},
		"nothing":                   {"", nil, "is not a file of"},
		"no YAML":                   {"\x00", nil, "is not a file of"},
		"a field too many":          {"extra: 1\n" + text, nil, "extra"},
		"a bad time":                {strings.Replace(text, "createdAt: \"2026", "createdAt: \"x", 1), nil, "createdAt"},
		"an unknown kind":           {strings.Replace(text, "kind: key", "kind: quota", 1), nil, "does not know the kind \"quota\"; use a newer one, or leave these items out with --skip quota"},
		"an unknown kind to skip":   {strings.Replace(text, "kind: key", "kind: quota", 1), []string{"quota"}, ""},
		"a known kind to skip":      {text, []string{"token"}, ""},
		"an item twice":             {strings.Replace(text, "items:\n", "items:\n  - { kind: secret, name: db, spec: {} }\n", 1), nil, "secret db is in the file twice"},
		"an unknown field":          {strings.Replace(text, "fingerprint:", "finger:", 1), nil, "key ann/SHA256:x: spec: "},
		"an unknown field of tasks": {strings.Replace(text, "command:", "comand:", 1), nil, "workflow nightly: "},
		"no mapping":                {strings.Replace(text, "items:\n", "items:\n  - 3\n", 1), nil, "f:"},
	} {
		f, err := Read("f", []byte(test.text), test.skip)
		switch {
		case test.says == "":
			if err != nil || len(f.Items) != len(items(t))-1 {
				t.Errorf("%s: %v, %d items", name, err, len(f.Items))
			}
		case err == nil || !strings.Contains(err.Error(), test.says):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sealed returns a secret as a gateway seals it for a key.
func sealed(t *testing.T, key Key, name, role, value string) *v1.ExportedItem {
	t.Helper()
	text, err := proto.Marshal(&v1.ExportedItem{Kind: v1.ExportSecret, Name: name, Content: &v1.ExportedItem_Secret{Secret: &v1.ExportedSecret{Role: role, Value: []byte(value)}}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	lines := armor.NewWriter(&out)
	w, err := age.Encrypt(lines, key.identity.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close(), lines.Close()); err != nil {
		t.Fatal(err)
	}
	return &v1.ExportedItem{Kind: v1.ExportSecret, Name: name, Content: &v1.ExportedItem_Secret{Secret: &v1.ExportedSecret{Role: role, Sealed: out.String()}}}
}

func TestOnlyThePassphraseOpensSecrets(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	const passphrase = "correct horse"
	text, err := key.Seal(passphrase)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKey(text, "another"); !errors.Is(err, ErrPassphrase) {
		t.Errorf("another pass phrase: %v", err)
	}
	if _, err := OpenKey(text[:len(text)/2], passphrase); err == nil || errors.Is(err, ErrPassphrase) {
		t.Errorf("half a key: %v", err)
	}
	opened, err := OpenKey(text, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	item := sealed(t, key, "db", v1.RoleUser, "hunter2")
	if err := opened.OpenSecret(item); err != nil || string(item.GetSecret().GetValue()) != "hunter2" || item.GetSecret().GetSealed() != "" {
		t.Errorf("%v, %v", item, err)
	}
	// A file in which values were exchanged, or a role lowered, is refused.
	renamed, opener := sealed(t, key, "db", v1.RoleAdmin, "hunter2"), sealed(t, key, "db", v1.RoleAdmin, "hunter2")
	renamed.Name, opener.GetSecret().Role = "other", v1.RoleUser
	for _, changed := range []*v1.ExportedItem{renamed, opener} {
		if err := opened.OpenSecret(changed); err == nil || !strings.Contains(err.Error(), "has changed the file") || changed.GetSecret().GetValue() != nil {
			t.Errorf("%v, %v", changed, err)
		}
	}
	other, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.OpenSecret(sealed(t, key, "db", v1.RoleUser, "hunter2")); err == nil || !strings.Contains(err.Error(), "open secret db") {
		t.Errorf("another key: %v", err)
	}
}
