package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

const (
	// specVersion is the version of CycloneDX, which tools of the last years read.
	specVersion = cyclonedx.SpecVersion1_6
	// rootsModule is the module from which the image has its certificates.
	rootsModule = "golang.org/x/crypto/x509roots/fallback"
	// sumProperty is the property of a component with the line of go.sum. It is the hash of a list of hashes, and of no file, so
	// it is not among the hashes of the component.
	sumProperty = "switchyard:go.sum"
)

// contained is what the binaries contain, by what Go has recorded in them.
type contained struct {
	// goVersion is the version of Go, such as go1.26.8.
	goVersion string
	// modules holds the modules of all binaries, in the order of their purls, and that of the image's certificates.
	modules []debug.Module
}

// readModules reads what the binaries contain. All must be of the same Go.
func (r release) readModules() (contained, error) {
	var c contained
	found := map[string]debug.Module{}
	add := func(m *debug.Module) {
		if m.Replace != nil {
			m = m.Replace
		}
		found[purl(*m)] = *m
	}
	for _, b := range r.binaries {
		info, err := buildinfo.ReadFile(b.path)
		if err != nil {
			return c, fmt.Errorf("read the modules of a binary: %w", err)
		}
		if c.goVersion = cmp.Or(c.goVersion, info.GoVersion); c.goVersion != info.GoVersion {
			return c, fmt.Errorf("%s was built by %s and another binary by %s; build all by the same Go", b.path, info.GoVersion, c.goVersion)
		}
		for _, m := range info.Deps {
			add(m)
		}
	}
	own, _ := debug.ReadBuildInfo()
	if i := slices.IndexFunc(own.Deps, func(m *debug.Module) bool { return m.Path == rootsModule }); i >= 0 {
		add(own.Deps[i])
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		c.modules = append(c.modules, found[key])
	}
	return c, nil
}

// purl returns the address of a module, as in https://github.com/package-url/purl-spec.
func purl(m debug.Module) string {
	return "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
}

// sbom writes the bill of materials and returns its name.
func (r release) sbom(c contained) (string, error) {
	standard := "pkg:golang/std@" + strings.TrimPrefix(c.goVersion, "go")
	components := []cyclonedx.Component{{
		BOMRef: standard, Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(c.goVersion, "go"), PackageURL: standard,
	}}
	for _, m := range c.modules {
		component := cyclonedx.Component{BOMRef: purl(m), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl(m)}
		if m.Sum != "" {
			component.Properties = &[]cyclonedx.Property{{Name: sumProperty, Value: m.Sum}}
		}
		components = append(components, component)
	}
	var references []string
	for _, c := range components {
		references = append(references, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.time.Format("2006-01-02T15:04:05Z"),
		Component: &cyclonedx.Component{
			BOMRef: "switchyard", Type: cyclonedx.ComponentTypeApplication, Name: "switchyard", Version: r.version, Description: summary,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: license}}},
			Pedigree: &cyclonedx.Pedigree{Commits: &[]cyclonedx.Commit{{UID: r.commit}}},
		},
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: "switchyard", Dependencies: &references}}
	// Equal bills have equal serial numbers.
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).EncodeVersion(bom, specVersion); err != nil {
		return "", err
	}
	sum := sha256.Sum256(text.Bytes())
	bom.SerialNumber = uuid.NewHash(sha256.New(), uuid.Nil, sum[:], 8).URN()
	text.Reset()
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, specVersion); err != nil {
		return "", err
	}
	name := r.name(".cdx.json")
	return name, os.WriteFile(filepath.Join(r.output, name), text.Bytes(), 0o644)
}
