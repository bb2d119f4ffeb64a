package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// Prefix begins each token, so that scanners of repositories recognize one.
	Prefix = "sy_"
	// idBytes and secretBytes are random.
	idBytes, secretBytes = 5, 32
	// maxID bounds the id of a token that comes from elsewhere, in characters.
	maxID = 16
)

// text is lower-case base32: what a double click selects, and no letter that looks like a digit.
var text = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// newText returns n random bytes as text.
func newText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return text.EncodeToString(b)
}

// join returns the token of an id and a secret.
func join(id, secret string) string { return Prefix + id + "_" + secret }

// split returns the parts of a token, or false if it has not the form of one.
func split(bearer string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(bearer, Prefix)
	id, secret, found := strings.Cut(rest, "_")
	if !ok || !found || secret == "" || !isID(id) {
		return "", "", false
	}
	return id, secret, true
}

// isID reports whether a text may be the id of a token; it may then be part of a key of the store.
func isID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// isSecretOf reports whether a secret is that of a token, in a time that tells nothing about it.
func isSecretOf(record *v1.TokenRecord, secret string) bool {
	return subtle.ConstantTimeCompare(record.GetSecretSha256(), digest(secret)) == 1
}

// stateOf returns the state of a token at a time.
func stateOf(t *v1.Token, now time.Time) string {
	switch {
	case t.GetRevokedAt() != nil:
		return v1.TokenRevoked
	case t.GetExpiresAt() != nil && !now.Before(t.GetExpiresAt().AsTime()):
		return v1.TokenExpired
	}
	return v1.TokenActive
}
