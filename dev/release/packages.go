package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// rpmZsh is where distributions with rpm keep completions for zsh.
const rpmZsh = "/usr/share/zsh/site-functions/_switchyard"

const (
	// license and summary describe Switchyard wherever a file of the release does.
	license = "Apache-2.0"
	// maintainer has the form that packages require. The address is reserved for names that do not exist (RFC 2606), because the
	// project has none: SECURITY.md says where to report.
	maintainer = "The Switchyard authors <authors@switchyard.invalid>"
	summary    = "Runs tasks, and graphs of tasks, reliably across machines"
)

// packages writes the deb and the rpm of a platform and returns their names.
func (r release) packages(b binary) ([]string, error) {
	formats := []string{"deb", "rpm"}
	if r.isDraft {
		formats = formats[:1]
	}
	var names []string
	for _, format := range formats {
		info, err := r.describe(b, format)
		if err != nil {
			return nil, err
		}
		name := r.name("."+format, b.architecture)
		if err := r.pack(info, format, name); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// describe returns the description of a package.
func (r release) describe(b binary, format string) (*nfpm.Info, error) {
	items, err := r.content(b)
	if err != nil {
		return nil, err
	}
	scripts := filepath.Join(r.source, "dev", "release", "files")
	info := &nfpm.Info{
		Name: "switchyard", Version: r.version, Platform: b.system, Arch: b.architecture, Release: "1",
		Section: "admin", Priority: "optional", License: license, Maintainer: maintainer,
		Description: summary + "\nGateway, node and client of Switchyard, which runs on Temporal, in one program.",
		MTime:       r.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Recommends: []string{"ca-certificates"},
			Scripts: nfpm.Scripts{
				PreInstall:  filepath.Join(scripts, "preinstall.sh"),
				PostInstall: filepath.Join(scripts, "postinstall.sh"),
				PreRemove:   filepath.Join(scripts, "preremove.sh"),
				PostRemove:  filepath.Join(scripts, "postremove.sh"),
			},
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: summary},
		},
	}
	if r.isDraft {
		info.Deb.Compression = "none"
	}
	for _, it := range items {
		if it.installed == "" {
			continue
		}
		content := &files.Content{
			Source: it.from, Destination: it.installed,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: it.mode, MTime: r.time},
		}
		if it.isSettings {
			content.Type = files.TypeConfigNoReplace
		}
		if it.group != "" {
			content.FileInfo.Group = it.group
		}
		if format == "rpm" && filepath.Base(it.installed) == filepath.Base(rpmZsh) {
			content.Destination = rpmZsh
		}
		info.Contents = append(info.Contents, content)
	}
	return info, nil
}

// pack writes a package.
func (r release) pack(info *nfpm.Info, format, name string) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.output, name))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	if err := packager.Package(info, out); err != nil {
		return err
	}
	return out.Close()
}
