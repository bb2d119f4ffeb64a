package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
)

// schemaOf compiles the schema of CycloneDX, which is in the module of the library.
func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	const base = "http://cyclonedx.org/schema/"
	c := jsonschema.NewCompiler()
	for name, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(readFile(t, strings.TrimSpace(string(out)), "schema", file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(base+name, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestBillOfMaterialsHasEveryModule checks the bill of materials by its schema, and that its components are those that Go has
// recorded in the binaries.
func TestBillOfMaterialsHasEveryModule(t *testing.T) {
	r := made(t)
	text := readFile(t, r.output, "switchyard_0.2.0-rc.1.cdx.json")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schemaOf(t).Validate(doc); err != nil {
		t.Error(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(r.binaries[0].path)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + strings.TrimPrefix(info.GoVersion, "go") + " "}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version+" "+m.Sum)
	}
	var got []string
	for _, c := range *bom.Components {
		if c.Name == rootsModule {
			continue // which is in the image
		}
		sum := ""
		if c.Properties != nil {
			sum = (*c.Properties)[0].Value
		}
		got = append(got, c.Name+" "+c.Version+" "+sum)
	}
	if len(got) < 3 || len(got) != len(*bom.Components)-1 || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("the components are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if refs := (*bom.Dependencies)[0].Dependencies; len(*refs) != len(*bom.Components) {
		t.Errorf("switchyard needs %d of %d components", len(*refs), len(*bom.Components))
	}
}

// TestProvenanceNamesEveryFile checks that the statement is one of in-toto and SLSA without further fields, and that its subjects
// are the files that are built.
func TestProvenanceNamesEveryFile(t *testing.T) {
	r := made(t)
	var statement intoto.Statement
	if err := protojson.Unmarshal(readFile(t, r.output, "switchyard_0.2.0-rc.1.provenance.json"), &statement); err != nil {
		t.Fatal(err)
	}
	inner, err := json.Marshal(statement.GetPredicate())
	if err != nil {
		t.Fatal(err)
	}
	var predicate slsa.Provenance
	if err := protojson.Unmarshal(inner, &predicate); err != nil {
		t.Fatal(err)
	}
	if err := statement.Validate(); err != nil {
		t.Error(err)
	}
	if err := predicate.Validate(); err != nil {
		t.Error(err)
	}
	left := slices.DeleteFunc(r.files(t), func(name string) bool {
		return name == sumsName || name == signatureName || strings.HasSuffix(name, ".provenance.json")
	})
	var subjects []string
	for _, s := range statement.GetSubject() {
		if sum, err := sumOf(filepath.Join(r.output, s.GetName())); err != nil || sum != s.GetDigest()["sha256"] {
			t.Errorf("%s has the checksum %s (%v), stated is %v", s.GetName(), sum, err, s.GetDigest())
		}
		subjects = append(subjects, s.GetName())
	}
	if !slices.Equal(subjects, left) {
		t.Errorf("the subjects are %q, want %q", subjects, left)
	}
	build := predicate.GetBuildDefinition()
	if source := build.GetResolvedDependencies()[0]; source.GetDigest()["gitCommit"] != r.commit {
		t.Errorf("the source is %v", source)
	}
	if got := build.GetExternalParameters().AsMap(); got["version"] != r.version || len(got["platforms"].([]any)) != 3 {
		t.Errorf("the parameters are %v", got)
	}
}
