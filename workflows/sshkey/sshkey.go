package sshkey

import (
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// minRSABits is the minimum length of an RSA key; shorter keys are no longer secure (NIST SP 800-131A).
const minRSABits = 2048

// example is the hint for a text that is not a key.
const example = `write a line of a .pub file, such as "ssh-ed25519 AAAA... me@host"`

// types are the types of keys that may log in.
var types = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
}

// Fault describes a problem in a text of keys. It never shows the faulty line, which may contain a secret.
type Fault struct {
	// Line is counted from 1; 0 means the text as a whole.
	Line int
	// Offset is the byte offset of the line in the text.
	Offset int
	// Reason completes a sentence that begins with the name of the text or of the line, such as "is a private key".
	Reason string
	// Hint is what to write instead; it may be empty.
	Hint string
}

// Error returns the fault on one line.
func (f *Fault) Error() string {
	text := "the text of SSH keys " + f.Reason
	if f.Line > 0 {
		text = fmt.Sprintf("line %d of the SSH keys %s", f.Line, f.Reason)
	}
	if f.Hint != "" {
		text += "; " + f.Hint
	}
	return text
}

// Parse returns the public keys in a text, one per line, without duplicates. Blank lines and lines that begin with "#" are
// skipped. The fault is nil if every other line is a key and there is at least one.
func Parse(text string) ([]ssh.PublicKey, *Fault) {
	if isPrivate(text) {
		return nil, &Fault{Reason: "contains a private key", Hint: "a private key must not leave its owner: write the public key from the .pub file beside it, and replace the pair if others can read this text"}
	}
	var keys []ssh.PublicKey
	offset, number := 0, 0
	for whole := range strings.Lines(text) {
		number++
		line := strings.TrimSpace(whole)
		if line != "" && !strings.HasPrefix(line, "#") {
			key, reason, hint := parseLine(line)
			if reason != "" {
				return nil, &Fault{Line: number, Offset: offset + strings.Index(whole, line), Reason: reason, Hint: hint}
			}
			if !slices.ContainsFunc(keys, func(k ssh.PublicKey) bool { return string(k.Marshal()) == string(key.Marshal()) }) {
				keys = append(keys, key)
			}
		}
		offset += len(whole)
	}
	if len(keys) == 0 {
		return nil, &Fault{Reason: "contains no public key", Hint: example}
	}
	return keys, nil
}

// isPrivate reports whether a text contains a private key in the formats of OpenSSH, OpenSSL or PuTTY, or the body of one.
func isPrivate(text string) bool {
	return strings.Contains(text, "PRIVATE KEY") || strings.Contains(text, "PuTTY-User-Key-File") || strings.Contains(text, "b3BlbnNzaC1rZXktdjE")
}

// parseLine returns the key of a line, or the reason and the hint if there is none.
func parseLine(line string) (key ssh.PublicKey, reason, hint string) {
	if strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
		return nil, "contains a control character", example
	}
	fields := strings.Fields(line)
	switch at := slices.IndexFunc(fields, isType); {
	case strings.HasPrefix(line, "---- BEGIN"):
		return nil, "begins a key in the format of RFC 4716", "convert it with `ssh-keygen -i -f FILE`"
	case at > 0:
		return nil, "has options before the key", "leave them out: write the type, the key and a comment"
	case strings.HasPrefix(fields[0], "ssh-dss"):
		return nil, "is a key of type ssh-dss, which is no longer secure", "create a pair with `ssh-keygen -t ed25519`"
	case strings.Contains(fields[0], "-cert-"):
		return nil, "is a certificate", "write the public key that it certifies, from the .pub file"
	case at < 0:
		return nil, "is not a public key", example
	case len(fields) == 1:
		return nil, "has a type but no key", example
	}
	data, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return nil, "has a key that is cut off or misspelled", example
	}
	key, err = ssh.ParsePublicKey(data)
	if err != nil {
		return nil, "has a key that is cut off or misspelled", example
	}
	if key.Type() != fields[0] {
		return nil, fmt.Sprintf("is of type %s, but its key is of type %s", fields[0], key.Type()), "copy the whole line of the .pub file"
	}
	if bits := rsaBits(key); bits > 0 && bits < minRSABits {
		return nil, fmt.Sprintf("is an RSA key of %d bits; it must have at least %d", bits, minRSABits), "create a pair with `ssh-keygen -t ed25519`"
	}
	return key, "", ""
}

func isType(word string) bool { return slices.Contains(types, word) }

// rsaBits returns the length of an RSA key, or 0 for any other key.
func rsaBits(key ssh.PublicKey) int {
	wrapped, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return 0
	}
	public, ok := wrapped.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return 0
	}
	return public.N.BitLen()
}
