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

// proofDomain begins what is signed of a proof.
const proofDomain = "switchyard proof 1"

// Prove returns a text by which another process of the deployment knows that one of them has sent it: for one purpose, and to
// the subject alone. It counts once, and for some minutes.
func (s *Signer) Prove(ctx context.Context, purpose, subject string) (string, error) {
	key, err := s.readKey(ctx)
	if err != nil {
		return "", err
	}
	at, nonce := strconv.FormatInt(s.now().Unix(), 10), rand.Text()
	return at + "." + nonce + "." + proofMAC(key, purpose, subject, at, nonce), nil
}

// CheckProof returns why a proof does not count, or "" if it does. The error says that this cannot be known now.
func (s *Signer) CheckProof(ctx context.Context, purpose, subject, proof string) (refused string, err error) {
	key, err := s.readKey(ctx)
	if err != nil {
		return "", err
	}
	parts := strings.Split(proof, ".")
	if len(parts) != 3 || !hmac.Equal([]byte(parts[2]), []byte(proofMAC(key, purpose, subject, parts[0], parts[1]))) {
		return "it is not signed by a gateway of this deployment for this one", nil
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return "it has no time", nil
	}
	now := s.now()
	if age := now.Sub(time.Unix(seconds, 0)); age > maxAge || age < -maxAhead {
		return "its time is over, or lies ahead; do the clocks of the gateways differ?", nil
	}
	return s.useNonce(parts[1], now), nil
}

// useNonce marks a proof as used.
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
