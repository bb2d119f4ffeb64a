package notifications

import (
	"encoding/base64"
	"errors"
	"html"
	"net/url"
	"strings"

	"switchyard/activities/secrets/mask"
	"switchyard/drawing/words"
)

// maxShown is how much of an answer is shown, in characters.
const maxShown = 200

// try is one try to deliver a message. It shows what a receiver answers, because the answer helps people to mend the target, but none
// of the secrets that the receiver repeats.
type try struct {
	*Sender
	// revealed holds the texts of secrets that the try has used.
	revealed []string
}

// shown returns the start of an answer, in one line.
func (t *try) shown(text string) string {
	return cut(strings.Join(strings.Fields(t.masked(text)), " "), maxShown)
}

// masked returns a text in one line without secrets and characters that do more than show. The second pass masks values that such
// characters split.
func (t *try) masked(text string) string {
	set := mask.New(t.revealed)
	return set.Text(words.Visible(words.OneLine(set.Text(text))))
}

// maskedError returns an error with a masked text, and without the causes of err, which are not masked.
func (t *try) maskedError(err error) error {
	return &failure{error: errors.New(t.masked(err.Error())), permanent: IsPermanent(err), after: RetryAfter(err), told: Told(err)}
}

// variants returns the texts by which a receiver may repeat a secret besides the encodings that [mask.New] knows: parts of a URL, and
// escapes of HTML.
func variants(secret string) []string {
	found := []string{secret}
	if key, isSigning := strings.CutPrefix(secret, "whsec_"); isSigning {
		found = append(found, key)
	}
	if u, err := url.Parse(secret); err == nil && u.Host != "" {
		found = append(found, urlParts(u)...)
	}
	for _, text := range found {
		if escaped := html.EscapeString(text); escaped != text {
			found = append(found, escaped, strings.ReplaceAll(escaped, "&#34;", "&quot;"))
		}
	}
	return found
}

// urlParts returns the parts of a URL that may be secret. Its host is shown.
func urlParts(u *url.URL) []string {
	password, _ := u.User.Password()
	parts := []string{u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery, u.User.Username(), password, u.User.Username() + ":" + password}
	parts = append(parts, strings.Split(u.EscapedPath(), "/")...)
	parts = append(parts, strings.Split(u.Path, "/")...)
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	var secret []string
	for _, part := range parts {
		if !mask.IsShort(part) && !strings.Contains(u.Host, part) {
			secret = append(secret, part)
		}
	}
	return secret
}

// plainAuth returns the text that the mechanism PLAIN of SMTP sends.
func plainAuth(username, password string) string {
	return base64.StdEncoding.EncodeToString([]byte("\x00" + username + "\x00" + password))
}
