package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
)

// FormField is the name of the field with the proof of a form.
const FormField = "form"

// FormSecret returns the secret of the browser's forms. A browser without one is given one.
func FormSecret(w http.ResponseWriter, r *http.Request) string {
	if secret := cookie(r, formCookie); secret != "" {
		return secret
	}
	secret := rand.Text()
	setCookie(w, r, formCookie, secret, 0)
	return secret
}

// Proof returns the proof of a form for a secret. Two proofs of one secret differ, so that compressed answers do not give it
// away.
func Proof(secret string) string {
	sum := proofSum(secret)
	masked := make([]byte, 2*len(sum))
	_, _ = rand.Read(masked[:len(sum)]) // never fails
	subtle.XORBytes(masked[len(sum):], masked[:len(sum)], sum)
	return base64.RawURLEncoding.EncodeToString(masked)
}

// HasProof reports whether a form that a browser has sent has the proof for the browser's secret.
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
