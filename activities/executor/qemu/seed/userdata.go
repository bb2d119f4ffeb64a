package seed

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// userData is the part of cloud-init's configuration that a seed sets. Everything else, such as growing the root file
// system to the size of the disk, stays as the image has it.
type userData struct {
	Hostname string `yaml:"hostname"`
	// ManageHosts is "localhost", which adds the machine's name to /etc/hosts, where sudo looks it up.
	ManageHosts   string   `yaml:"manage_etc_hosts"`
	DisableRoot   bool     `yaml:"disable_root"`
	PasswordLogin bool     `yaml:"ssh_pwauth"`
	Users         []user   `yaml:"users"`
	HostKeys      *hostKey `yaml:"ssh_keys,omitempty"`
}

type user struct {
	Name           string   `yaml:"name"`
	Shell          string   `yaml:"shell,omitempty"`
	Sudo           string   `yaml:"sudo,omitempty"`
	LockPassword   bool     `yaml:"lock_passwd"`
	AuthorizedKeys []string `yaml:"ssh_authorized_keys"`
}

type hostKey struct {
	Private string `yaml:"ed25519_private"`
	Public  string `yaml:"ed25519_public"`
}

type metaData struct {
	InstanceID string `yaml:"instance-id"`
	Hostname   string `yaml:"local-hostname"`
}

// userDataText returns the content of the seed's user-data file.
func userDataText(s Seed) ([]byte, error) {
	u := user{Name: s.User, LockPassword: true, AuthorizedKeys: s.AuthorizedKeys}
	if s.User == "" {
		u.Name = Root
	}
	if u.Name != Root {
		// The images of Debian, Ubuntu and Fedora give users the same shell.
		u.Shell, u.Sudo = "/bin/bash", "ALL=(ALL) NOPASSWD:ALL"
	}
	data := userData{Hostname: s.Hostname, ManageHosts: "localhost", DisableRoot: u.Name != Root, Users: []user{u}}
	if s.HostKey != "" {
		data.HostKeys = &hostKey{s.HostKey, s.HostKeyPublic}
	}
	return encode("#cloud-config\n", data)
}

// metaDataText returns the content of the seed's meta-data file.
func metaDataText(s Seed) ([]byte, error) {
	return encode("", metaData{s.InstanceID, s.Hostname})
}

func encode(header string, value any) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString(header)
	encoder := yaml.NewEncoder(&text)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return text.Bytes(), err
}
