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
	// Prefix is the prefix of all tokens, by which repository scanners recognize them.
	Prefix = "sy_"
	// idBytes and secretBytes are the numbers of random bytes in the two parts.
	idBytes, secretBytes = 5, 32
	// maxID bounds the id of a presented token, in characters.
	maxID = 16
)

// text is lower-case base32: a double click selects it whole, and no letter looks like a digit.
var text = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// newText returns n random bytes as text.
func newText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return text.EncodeToString(b)
}

// join builds a token from an id and a secret.
func join(id, secret string) string { return Prefix + id + "_" + secret }

// split returns the parts of a token, or false if the text is not a token.
func split(bearer string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(bearer, Prefix)
	id, secret, found := strings.Cut(rest, "_")
	if !ok || !found || secret == "" || !isID(id) {
		return "", "", false
	}
	return id, secret, true
}

// isID reports whether a text has the form of a token id, which makes it safe in a store key.
func isID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// isSecretOf reports whether a secret belongs to a token, in constant time.
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
