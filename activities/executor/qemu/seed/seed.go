package seed

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Root is the user for whom root's login is enabled instead of creating a user.
const Root = "root"

// Seed holds what a machine is given at its first boot.
type Seed struct {
	// InstanceID identifies the machine. cloud-init sets a disk up again if the ID differs from that of the disk's last
	// boot.
	InstanceID string
	// Hostname is the name of the machine, without a domain.
	Hostname string
	// User may log in; "" means Root. Any other user can become root by sudo without a password, and has no password.
	User string
	// AuthorizedKeys are the lines of the public keys with which the user logs in.
	AuthorizedKeys []string
	// HostKey is the private ed25519 key of the machine as a PEM in OpenSSH format. If it is "", the machine generates
	// its own keys.
	HostKey string
	// HostKeyPublic is the public key of HostKey in one line.
	HostKeyPublic string
}

var (
	hostnameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	userForm     = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
)

// validate reports everything that is wrong with the seed.
func (s Seed) validate() error {
	var errs []error
	report := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.InstanceID == "" || strings.ContainsAny(s.InstanceID, "\r\n") {
		report("instance id %q is not one line of text", s.InstanceID)
	}
	if !hostnameForm.MatchString(s.Hostname) {
		report("host name %q is not 1 to 63 of a-z, 0-9 and hyphens", s.Hostname)
	}
	if s.User != "" && !userForm.MatchString(s.User) {
		report("user %q is not 1 to 32 of a-z, 0-9, _ and hyphens, beginning with a letter or _", s.User)
	}
	if len(s.AuthorizedKeys) == 0 {
		report("the seed has no public key, so login would be impossible")
	}
	for _, key := range s.AuthorizedKeys {
		if strings.TrimSpace(key) == "" || strings.ContainsAny(key, "\r\n") {
			report("public key %q is not one line of text", key)
		}
	}
	if (s.HostKey == "") != (s.HostKeyPublic == "") {
		report("the seed has only one half of the host key")
	}
	if strings.ContainsAny(s.HostKeyPublic, "\r\n") {
		report("the public host key is more than one line")
	}
	return errors.Join(errs...)
}
