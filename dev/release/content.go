package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// item is a file of the release.
type item struct {
	// from is its path on this machine.
	from string
	// archived is its path in a tarball, or "" if only packages have it.
	archived string
	// installed is its path on a machine with the package, or "" if only tarballs have it.
	installed string
	mode      os.FileMode
	// isSettings marks a file that belongs to the administrator once it is installed.
	isSettings bool
	// group owns the file together with root. The default is root.
	group string
}

// content returns the files of a platform.
func (r release) content(b binary) ([]item, error) {
	files := filepath.Join(r.source, "dev", "release", "files")
	items := []item{
		{from: b.path, archived: "switchyard", installed: "/usr/bin/switchyard", mode: 0o755},
		{from: filepath.Join(r.source, "LICENSE"), archived: "LICENSE", installed: "/usr/share/doc/switchyard/copyright"},
		{from: filepath.Join(r.source, "README.md"), archived: "README.md", installed: "/usr/share/doc/switchyard/README.md"},
		{from: filepath.Join(r.source, "CHANGELOG.md"), archived: "CHANGELOG.md", installed: "/usr/share/doc/switchyard/CHANGELOG.md"},
		{from: filepath.Join(files, "gateway.yaml"), archived: "settings/gateway.yaml", installed: "/etc/switchyard/gateway.yaml", isSettings: true},
		{from: filepath.Join(files, "worker.yaml"), archived: "settings/worker.yaml", installed: "/etc/switchyard/worker.yaml", isSettings: true},
		{from: filepath.Join(files, "temporal.toml"), archived: "settings/temporal.toml", installed: "/etc/switchyard/temporal.toml", isSettings: true, mode: 0o640, group: "switchyard"},
		{from: filepath.Join(files, "switchyard-gateway.service"), installed: "/usr/lib/systemd/system/switchyard-gateway.service"},
		{from: filepath.Join(files, "switchyard-worker@.service"), installed: "/usr/lib/systemd/system/switchyard-worker@.service"},
		{from: filepath.Join(files, "sysusers.conf"), installed: "/usr/lib/sysusers.d/switchyard.conf"},
		{from: filepath.Join(files, "tmpfiles.conf"), installed: "/usr/lib/tmpfiles.d/switchyard.conf"},
		{from: filepath.Join(r.manuals, "completions", "switchyard.bash"), archived: "completions/switchyard.bash", installed: "/usr/share/bash-completion/completions/switchyard"},
		{from: filepath.Join(r.manuals, "completions", "_switchyard"), archived: "completions/_switchyard", installed: "/usr/share/zsh/vendor-completions/_switchyard"},
		{from: filepath.Join(r.manuals, "completions", "switchyard.fish"), archived: "completions/switchyard.fish", installed: "/usr/share/fish/vendor_completions.d/switchyard.fish"},
	}
	examples := filepath.Join(r.source, "dev", "examples")
	err := filepath.WalkDir(examples, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".want.json") {
			return err
		}
		name, err := filepath.Rel(examples, path)
		items = append(items, item{from: path, archived: "examples/" + name, installed: "/usr/share/doc/switchyard/examples/" + name})
		return err
	})
	if err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(r.manuals, "man", "*.1"))
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("no manual pages in %s (%w); write them with dev/manuals", r.manuals, err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		items = append(items, item{from: page, archived: "man/" + name, installed: "/usr/share/man/man1/" + name})
	}
	for i := range items {
		if items[i].mode == 0 {
			items[i].mode = 0o644
		}
	}
	return items, nil
}

// name returns the name of a file of the release, of the given parts and with the given ending.
func (r release) name(ending string, parts ...string) string {
	return strings.Join(append([]string{"switchyard", r.version}, parts...), "_") + ending
}
