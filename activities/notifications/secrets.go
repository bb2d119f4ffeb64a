package notifications

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"switchyard/activities/secrets/vault"
	"switchyard/workflows/secretref"
)

// reveal returns a value of a target, which may be a reference to a stored secret. What the try shows has the value masked.
func (t *try) reveal(ctx context.Context, text string) (string, error) {
	name, isReference := storedSecret(text)
	if !isReference {
		return text, nil
	}
	if t.vault == nil {
		return "", fmt.Errorf("this process has no key for secret %s; start it with --secrets-key FILE", name)
	}
	value, _, err := t.vault.Open(ctx, name)
	if errors.Is(err, vault.ErrUnknown) {
		return "", fmt.Errorf("secret %s does not exist; set it with `switchyard secrets set %s`", name, name)
	}
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(string(value))
	t.revealed = append(t.revealed, variants(text)...)
	return text, nil
}

// storedSecret returns the name of the stored secret that a text refers to. ok is false if it is no such reference.
func storedSecret(text string) (name string, ok bool) {
	ref, fault := secretref.Parse(text)
	return ref.Name, fault == nil && ref.Kind == secretref.Store
}
