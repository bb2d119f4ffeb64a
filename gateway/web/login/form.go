package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
)

// FormField is the name of the form field with the proof.
const FormField = "form"

// FormSecret returns the form secret of the browser, and creates one if necessary.
func FormSecret(w http.ResponseWriter, r *http.Request) string {
	if secret := cookie(r, formCookie); secret != "" {
		return secret
	}
	secret := rand.Text()
	setCookie(w, r, formCookie, secret, 0)
	return secret
}

// Proof returns a proof for a secret. Each call masks the proof differently, so that the size of compressed responses does
// not leak it.
func Proof(secret string) string {
	sum := proofSum(secret)
	masked := make([]byte, 2*len(sum))
	_, _ = rand.Read(masked[:len(sum)]) // never fails
	subtle.XORBytes(masked[len(sum):], masked[:len(sum)], sum)
	return base64.RawURLEncoding.EncodeToString(masked)
}

// HasProof reports whether a submitted form carries a proof for the browser's secret.
func HasProof(r *http.Request) bool {
	secret := cookie(r, formCookie)
	masked, err := base64.RawURLEncoding.DecodeString(r.PostFormValue(FormField))
	if secret == "" || err != nil || len(masked) != 2*sha256.Size {
		return false
	}
	sum := make([]byte, sha256.Size)
	subtle.XORBytes(sum, masked[:sha256.Size], masked[sha256.Size:])
	return hmac.Equal(sum, proofSum(secret))
}

func proofSum(secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("form of switchyard"))
	return mac.Sum(nil)
}
