package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	predicateType = "https://slsa.dev/provenance/v1"
	// builtBy says how a release is built: by this script of the commit. It also is the builder, because no service builds
	// releases: the script runs on a machine of whoever signs the release.
	builtBy = "switchyard:dev/release.sh"
)

// provenance writes how the given files of the release were built, and returns the name of the statement. The statement is that of
// whoever signs the checksums; there is no other signature in it.
func (r release) provenance(c contained, names []string) (string, error) {
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: predicateType}
	for _, name := range slices.Sorted(slices.Values(names)) {
		sum, err := sumOf(filepath.Join(r.output, name))
		if err != nil {
			return "", err
		}
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	var platforms []any
	for _, b := range r.binaries {
		platforms = append(platforms, b.system+"/"+b.architecture)
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": r.version, "commit": r.commit, "platforms": platforms})
	if err != nil {
		return "", err
	}
	toolchain, err := structpb.NewStruct(map[string]any{"go": c.goVersion})
	if err != nil {
		return "", err
	}
	source := &intoto.ResourceDescriptor{Name: "source"}
	if !strings.HasSuffix(r.commit, "+dirty") {
		source.Digest = map[string]string{"gitCommit": r.commit}
	}
	build := &slsa.BuildDefinition{
		BuildType: builtBy, ExternalParameters: parameters, InternalParameters: toolchain, ResolvedDependencies: []*intoto.ResourceDescriptor{source},
	}
	for _, m := range c.modules {
		d := &intoto.ResourceDescriptor{Uri: purl(m)}
		// The sum of a module is what in-toto calls dirHash.
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
			d.Digest = map[string]string{"dirHash": hex.EncodeToString(sum)}
		}
		build.ResolvedDependencies = append(build.ResolvedDependencies, d)
	}
	predicate := &slsa.Provenance{BuildDefinition: build, RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: builtBy}}}
	if err := predicate.Validate(); err != nil {
		return "", fmt.Errorf("provenance: %w", err)
	}
	inner, err := protojson.Marshal(predicate)
	if err != nil {
		return "", err
	}
	statement.Predicate = &structpb.Struct{}
	if err := protojson.Unmarshal(inner, statement.Predicate); err != nil {
		return "", err
	}
	if err := statement.Validate(); err != nil {
		return "", fmt.Errorf("provenance: %w", err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return "", err
	}
	// The spaces of protojson differ between builds.
	var even bytes.Buffer
	if err := json.Indent(&even, text, "", "  "); err != nil {
		return "", err
	}
	name := r.name(".provenance.json")
	return name, os.WriteFile(filepath.Join(r.output, name), append(even.Bytes(), '\n'), 0o644)
}
