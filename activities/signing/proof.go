package signing

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// proofDomain is the first field of the signed data of a proof.
const proofDomain = "switchyard proof 1"

// Prove returns a proof for another process that a process of this deployment has sent it. The proof is valid for one purpose
// and subject, once, and for some minutes.
func (s *Signer) Prove(ctx context.Context, purpose, subject string) (string, error) {
	key, err := s.readKey(ctx)
	if err != nil {
		return "", err
	}
	at, nonce := strconv.FormatInt(s.now().Unix(), 10), rand.Text()
	return at + "." + nonce + "." + proofMAC(key, purpose, subject, at, nonce), nil
}

// CheckProof returns why a proof is invalid, or "" if it is valid, and marks a valid proof as used. An error means that the
// check is not possible now.
func (s *Signer) CheckProof(ctx context.Context, purpose, subject, proof string) (refused string, err error) {
	key, err := s.readKey(ctx)
	if err != nil {
		return "", err
	}
	parts := strings.Split(proof, ".")
	if len(parts) != 3 || !hmac.Equal([]byte(parts[2]), []byte(proofMAC(key, purpose, subject, parts[0], parts[1]))) {
		return "it is not signed by a gateway of this deployment for this gateway", nil
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return "it has no time", nil
	}
	now := s.now()
	if age := now.Sub(time.Unix(seconds, 0)); age > maxAge || age < -maxAhead {
		return "it has expired or lies in the future; do the clocks of the gateways differ?", nil
	}
	return s.useNonce(parts[1], now), nil
}

// useNonce marks a proof as used. It returns why the proof is refused, or "".
func (s *Signer) useNonce(nonce string, now time.Time) (refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.nonces[nonce]; ok {
		return "it was used before"
	}
	for nonce, at := range s.nonces {
		if now.Sub(at) > maxAge+maxAhead {
			delete(s.nonces, nonce)
		}
	}
	if s.nonces == nil {
		s.nonces = map[string]time.Time{}
	}
	s.nonces[nonce] = now
	return ""
}

// proofMAC returns the signature of a proof.
func proofMAC(key []byte, fields ...string) string {
	h := hmac.New(sha256.New, key)
	writeField(h, proofDomain)
	for _, field := range fields {
		writeField(h, field)
	}
	return hex.EncodeToString(h.Sum(nil))
}
