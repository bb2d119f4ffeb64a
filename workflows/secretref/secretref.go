package secretref

import (
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"switchyard/workflows/nearest"
)

// These are the kinds of references, by the location of the value.
const (
	File  = "file"  // in a file on the node
	Env   = "env"   // in a variable of the worker's environment
	Store = "store" // in the store, under a name
)

// Pattern matches the texts that Parse accepts, as closely as a regular expression can. JSON schemas use it.
const Pattern = `^(file:/.+|env:[A-Za-z_][A-Za-z0-9_]*|store:[A-Za-z0-9][A-Za-z0-9._-]{0,62})$`

const (
	maxPath = 1024
	maxName = 255
	// ownVariables is the prefix of the worker's own settings, which include its token.
	ownVariables = "SWITCHYARD_"
)

var (
	kinds        = []string{File, Env, Store}
	kindForm     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,15}$`) })
	variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	storeName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })
)

// Reference locates the value of a secret.
type Reference struct {
	Kind string
	// Name is the path of a file, or the name of a variable or of a stored secret.
	Name string
}

// String returns the reference as definitions write it.
func (r Reference) String() string { return r.Kind + ":" + r.Name }

// Fault is why a text is not a reference. Neither field quotes text that may be a secret.
type Fault struct {
	Reason string // follows the name of the value that holds the text
	Hint   string // correct form, or ""
}

// Error returns the reason.
func (f *Fault) Error() string { return f.Reason }

// Parse parses a reference. Its fault quotes nothing of an invalid text, because the text may be the secret itself.
func Parse(text string) (Reference, *Fault) {
	kind, name, found := strings.Cut(text, ":")
	r := Reference{kind, name}
	switch {
	case text == "":
		return r, fault("is empty; it must say where the value is", Forms)
	case !found || !kindForm().MatchString(kind):
		return r, fault("is not a reference: it must say where the value is, not be the value", Forms)
	case kind == File:
		return r, r.checkFile()
	case kind == Env:
		return r, r.checkVariable()
	case kind == Store:
		if !storeName().MatchString(name) {
			return r, fault("does not name a stored secret: at most 63 letters, digits, '.', '_' and '-', the first a letter or digit", "such as store:deploy-token")
		}
		return r, nil
	}
	return r, unknownKind(kind, name)
}

// Forms is the hint for a text that has none of the forms.
const Forms = `write "file:/run/secrets/NAME", "env:NAME" or "store:NAME"`

func fault(reason, hint string) *Fault { return &Fault{reason, hint} }

// unknownKind returns the fault of a text that begins with an unknown word. It quotes the word only if it is well known or near
// to a kind, because the word may be the user name in "user:password".
func unknownKind(kind, name string) *Fault {
	near := nearest.Word(kind, kinds)
	switch strings.ToLower(kind) {
	case "vault", "secret", "secrets", "ssm", "aws", "gcp", "azure", "k8s", "op", "sops", "keyring", "doppler":
		near = Store
		reason := "has the unknown kind " + kind + "; the kinds are file, env and store"
		if storeName().MatchString(name) {
			return fault(reason, "did you mean "+Store+":"+name+"? `switchyard secrets set "+name+"` stores its value")
		}
		return fault(reason, Forms)
	case "path", "files":
		near = File
	case "environment", "var", "variable":
		near = Env
	}
	if near != "" {
		return fault("has the unknown kind "+kind+"; the kinds are file, env and store", "did you mean "+near+":?")
	}
	return fault("is not a reference: it must begin with file:, env: or store:, not be the value", Forms)
}

func (r Reference) checkFile() *Fault {
	switch clean := path.Clean(r.Name); {
	case !strings.HasPrefix(r.Name, "/"):
		return fault("has a relative path; nodes have no common working directory", "write an absolute path, such as file:/run/secrets/token")
	case strings.HasPrefix(r.Name, "//"), clean == "/", strings.HasSuffix(r.Name, "/"):
		return fault("does not name a file", "write the path of a file, such as file:/run/secrets/token")
	case clean != r.Name:
		return fault("has a path with . or .. or // in it", "did you mean file:"+clean+"?")
	case len(r.Name) > maxPath || strings.ContainsRune(r.Name, 0) || !utf8.ValidString(r.Name):
		return fault("has a path that is too long or invalid", "")
	}
	return nil
}

func (r Reference) checkVariable() *Fault {
	switch {
	case strings.HasPrefix(r.Name, ownVariables):
		return fault("names a setting of the worker, which is not passed to tasks", "store the value: `switchyard secrets set NAME`, and write store:NAME")
	case len(r.Name) > maxName || !variableName().MatchString(r.Name):
		return fault("does not name an environment variable: letters, digits and '_', the first not a digit", "such as env:DEPLOY_TOKEN")
	}
	return nil
}
