package notifications

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/activities/secrets/vault"
	v1 "switchyard/proto/switchyard/v1"
)

// Check returns an error if a target cannot be used, beyond the rules of its message.
func Check(target *v1.NotificationTarget) error {
	switch config := target.GetConfig().(type) {
	case *v1.NotificationTarget_Webhook:
		return errors.Join(checkURL("webhook.url", config.Webhook.GetUrl()), checkSecret("webhook.secret", config.Webhook.GetSecret(), "the signing key, made by "+newKeyCommand))
	case *v1.NotificationTarget_Slack:
		return checkSecret("slack.url", config.Slack.GetUrl(), "the URL of the incoming webhook")
	case *v1.NotificationTarget_Teams:
		return checkSecret("teams.url", config.Teams.GetUrl(), "the URL of the incoming webhook")
	case *v1.NotificationTarget_Ntfy:
		err := checkURL("ntfy.url", config.Ntfy.GetUrl())
		if config.Ntfy.GetToken() != "" {
			err = errors.Join(err, checkSecret("ntfy.token", config.Ntfy.GetToken(), "the access token"))
		}
		return err
	case *v1.NotificationTarget_Email:
		err := checkEmail(config.Email)
		if config.Email.GetPassword() != "" {
			err = errors.Join(err, checkSecret("email.password", config.Email.GetPassword(), "the password"))
		}
		return err
	}
	return nil
}

// checkSecret returns an error unless a text refers to a stored secret. what names the value of the secret.
func checkSecret(field, text, what string) error {
	if _, isReference := storedSecret(text); isReference {
		return nil
	}
	state := "must be store:NAME"
	if text == "" {
		state = "is required"
	}
	return fmt.Errorf("%s %s: store %s, with `switchyard secrets set NAME`, and write store:NAME here", field, state, what)
}

// newKeyCommand is a command that prints a new signing key.
const newKeyCommand = "`echo \"whsec_$(head -c 32 /dev/urandom | base64)\"`"

// CheckSigningKey returns an error if the signing key of a webhook can be read here, and is not valid. Otherwise, `notifications test`
// and the first delivery notice it.
func CheckSigningKey(ctx context.Context, v *vault.Vault, target *v1.NotificationTarget) error {
	name, isReference := storedSecret(target.GetWebhook().GetSecret())
	if !isReference {
		return nil
	}
	value, _, err := v.Open(ctx, name)
	if err != nil {
		return nil
	}
	if _, err := newSigner(strings.TrimSpace(string(value))); err != nil {
		return fmt.Errorf("webhook.secret names secret %s: %w; %s makes one", name, err, newKeyCommand)
	}
	return nil
}

// checkEmail returns an error unless the addresses of a target are valid, and user name and password belong together.
func checkEmail(to *v1.EmailTarget) error {
	for _, address := range append([]string{to.GetFrom()}, to.GetTo()...) {
		if _, domain := addressParts(address); domain == "" {
			return fmt.Errorf("email: %q is not an address such as ops@example.com", address)
		}
	}
	if (to.GetUsername() == "") != (to.GetPassword() == "") {
		return errors.New("email.username and email.password belong together; give both or neither")
	}
	return nil
}

// checkURL returns an error unless a text is a URL without credentials, or refers to a stored secret.
func checkURL(field, text string) error {
	if _, isReference := storedSecret(text); isReference {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%s is neither a URL such as https://hooks.example.com/runs nor store:NAME", field)
	}
	if u.User != nil {
		return fmt.Errorf("%s holds credentials; store the URL as a secret, and write store:NAME", field)
	}
	return nil
}

// Secrets returns the names of the stored secrets that a target refers to.
func Secrets(target *v1.NotificationTarget) []string {
	var found []string
	m := target.ProtoReflect()
	config := m.WhichOneof(m.Descriptor().Oneofs().ByName("config"))
	if config == nil {
		return nil
	}
	m.Get(config).Message().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Kind() == protoreflect.StringKind && !field.IsList() {
			if name, ok := storedSecret(value.String()); ok {
				found = append(found, name)
			}
		}
		return true
	})
	return found
}
