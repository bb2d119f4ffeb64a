package notifications

import (
	"errors"
	"fmt"
	"net/url"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// Check returns an error if a target cannot be used, beyond the rules of its message.
func Check(target *v1.NotificationTarget) error {
	switch config := target.GetConfig().(type) {
	case *v1.NotificationTarget_Webhook:
		return checkURL("webhook.url", config.Webhook.GetUrl())
	case *v1.NotificationTarget_Ntfy:
		return checkURL("ntfy.url", config.Ntfy.GetUrl())
	case *v1.NotificationTarget_Email:
		return checkEmail(config.Email)
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
